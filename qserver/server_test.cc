// SPDX-License-Identifier: Apache-2.0
// The whole queue server in one process, with agents and jobmanagers that the test plays over gRPC.
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/job_state.h"
#include "qserver/errors.h"
#include "qserver/nodes_service.h"
#include "qserver/queue_service.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const identity::Time kTestNow{std::chrono::seconds(1'800'000'000)};

// Every node that is up has two processors; more than four can never run.
class FakeAllocator final : public AllocatorLink {
 public:
  awaitable<absl::StatusOr<proto::DecideReply>> Decide(proto::DecideRequest request) override {
    if (is_silent) {
      co_return absl::UnavailableError("silent");
    }
    std::map<std::string, int> free;
    for (const proto::NodeState& node : request.node()) free[node.name()] = 2;
    for (const proto::Lease& lease : request.running()) {
      for (const proto::Placement& place : lease.placement())
        free[place.node()] -= place.processes();
    }
    proto::DecideReply reply;
    for (const proto::Demand& demand : request.pending()) {
      *reply.add_decision() = DecideOne(demand, free);
    }
    co_return reply;
  }
  awaitable<absl::StatusOr<proto::InventoryReply>> Inventory() override {
    proto::InventoryReply reply;
    for (const char* name : {"n1", "n2"}) {
      reply.add_node()->set_name(name);
    }
    co_return reply;
  }

  std::atomic<bool> is_silent = false;

 private:
  static proto::Decision DecideOne(const proto::Demand& demand, std::map<std::string, int>& free) {
    proto::Decision decision;
    decision.set_job_id(demand.job_id());
    if (demand.processes() > 4) {
      decision.mutable_never()->set_reason("asks for more than there is");
      return decision;
    }
    int left = demand.processes();
    for (auto& [node, count] : free) {
      const int take = std::min(left, count);
      if (take > 0) {
        proto::Placement& place = *decision.mutable_start()->add_placement();
        place.set_node(node);
        place.set_processes(take);
        left -= take;
      }
    }
    if (left > 0) {
      decision.mutable_wait()->set_resource("R");
      decision.mutable_wait()->set_reason("waits for processors on R");
      return decision;
    }
    for (const proto::Placement& place : decision.start().placement())
      free[place.node()] -= place.processes();
    decision.mutable_start()->set_resource("R");
    return decision;
  }
};

// One life of the daemon over a state directory.
class Server {
 public:
  Server(const std::string& state, FakeAllocator& allocator, absl::Status caller)
      : work_(asio::make_work_guard(loop_)), spool_(state + "/spool") {
    CHECK(spool_.Prepare().ok());
    store_ = *EventStore::Open(loop_, state + "/events.db");
    TaskSettings settings;
    settings.site = rules_.site = "siteA";
    conductor_ = std::make_unique<Conductor>(loop_, *store_, spool_, allocator, settings, 0);
    CHECK(conductor_->Restore().ok());
    QueueService::Judges judges;
    judges.caller = [caller](const auto&) { return caller; };
    judges.request = [this](const proto::QueueRequest& request) { return Judge(request); };
    judges.now = [] { return kTestNow; };
    judges.find_account = [](const std::string& name) -> std::optional<Account> {
      return name == "root" ? Account{"/root", 0} : Account{"/home/" + name, 1000};
    };
    queue_service_ = std::make_unique<QueueService>(loop_, *conductor_, rules_, std::move(judges));
    nodes_service_ = std::make_unique<NodesService>(
        loop_, *conductor_, [](const auto&, const std::string& node) {
          return node == "stranger" ? errors::NotANode("/CN=x", node) : absl::OkStatus();
        });
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(queue_service_.get());
    builder.RegisterService(nodes_service_.get());
    server_ = builder.BuildAndStart();
    conductor_->Run();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Server() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    loop_.stop();
    thread_.join();
    conductor_.reset();
  }

  std::shared_ptr<grpc::Channel> Dial() const {
    return grpc::CreateChannel("127.0.0.1:" + std::to_string(port_),
                               grpc::InsecureChannelCredentials());
  }

 private:
  // The signature stands for the subject: who signs is admission_test's matter.
  absl::StatusOr<Verified> Judge(const proto::QueueRequest& request) const {
    Verified verified;
    CHECK(verified.body.ParseFromString(request.request().body()));
    verified.identity.subject = request.request().signature();
    verified.account = request.account();
    verified.job_id = JobIdFor("siteA", verified.identity.subject, verified.body.request_id());
    return verified;
  }

  Loop loop_;
  asio::executor_work_guard<Loop::executor_type> work_;
  AdmissionRules rules_;
  Spool spool_;
  std::unique_ptr<EventStore> store_;
  std::unique_ptr<Conductor> conductor_;
  std::unique_ptr<QueueService> queue_service_;
  std::unique_ptr<NodesService> nodes_service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::thread thread_;
};

// An agent as the test plays it.
class Agent {
 public:
  Agent(const Server& server, const std::string& node, const std::vector<proto::TaskKey>& held = {})
      : stub_(proto::Nodes::NewStub(server.Dial())), stream_(stub_->Attach(&context_)) {
    proto::AgentMessage hello;
    hello.mutable_hello()->set_node(node);
    hello.mutable_hello()->set_version("test");
    for (const proto::TaskKey& key : held) {
      *hello.mutable_hello()->add_held() = key;
    }
    stream_->Write(hello);
  }
  ~Agent() {
    context_.TryCancel();
    stream_->Finish();
  }

  // The next message; empty if the stream has ended.
  proto::ServerMessage Next() {
    proto::ServerMessage message;
    stream_->Read(&message);
    return message;
  }
  proto::ServerMessage::Start NextStart() {
    for (;;) {
      const proto::ServerMessage message = Next();
      if (message.has_start() || message.kind_case() == proto::ServerMessage::KIND_NOT_SET) {
        return message.start();
      }
    }
  }
  void Say(const proto::AgentMessage& message) { stream_->Write(message); }
  void Started(const proto::TaskKey& key) {
    proto::AgentMessage message;
    *message.mutable_started()->mutable_task() = key;
    Say(message);
  }
  void Output(const proto::TaskKey& key, uint64_t offset, const std::string& data,
              proto::OutputChunk::Stream stream = proto::OutputChunk::STDOUT) {
    proto::AgentMessage message;
    *message.mutable_output()->mutable_task() = key;
    message.mutable_output()->set_stream(stream);
    message.mutable_output()->set_offset(offset);
    message.mutable_output()->set_data(data);
    Say(message);
  }
  void Exited(const proto::TaskKey& key, int code, uint64_t out = 0, uint64_t err = 0,
              int gram_code = 0) {
    proto::AgentMessage message;
    *message.mutable_exited()->mutable_task() = key;
    message.mutable_exited()->mutable_exit()->set_code(code);
    message.mutable_exited()->set_stdout_size(out);
    message.mutable_exited()->set_stderr_size(err);
    message.mutable_exited()->set_gram_code(gram_code);
    message.mutable_exited()->set_reason(gram_code == 0 ? "" : "no such file");
    Say(message);
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<proto::Nodes::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<proto::AgentMessage, proto::ServerMessage>> stream_;
};

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    char name[] = "/tmp/sekisho-qserver-XXXXXX";
    state_ = mkdtemp(name);
    Restart();
  }
  ~ServerTest() override {
    server_.reset();
    std::filesystem::remove_all(state_);
  }
  void Restart(absl::Status caller = absl::OkStatus()) {
    server_.reset();
    server_ = std::make_unique<Server>(state_, allocator_, caller);
    queue_ = proto::Queue::NewStub(server_->Dial());
  }
  // A reply from the node's own stream says that the server knows it.
  std::unique_ptr<Agent> Attach(const std::string& node,
                                const std::vector<proto::TaskKey>& held = {}) {
    auto agent = std::make_unique<Agent>(*server_, node, held);
    EXPECT_TRUE(agent->Next().has_welcome());
    return agent;
  }

  static proto::QueueRequest Request(const std::string& id, const std::string& subject) {
    proto::QueueRequest request;
    request.set_account("alice");
    request.mutable_request()->set_signature(subject);
    proto::RequestBody body;
    body.set_request_id(id);
    body.set_time_ms(1'800'000'000'000);
    request.mutable_request()->set_body(body.SerializeAsString());
    return request;
  }
  grpc::Status Submit(const std::string& id, const std::string& rsl, proto::SubmitReply& reply,
                      bool has_input = false, bool dry_run = false) {
    proto::QueueRequest request = Request(id, "/CN=Alice");
    proto::RequestBody body;
    body.ParseFromString(request.request().body());
    body.mutable_submit()->set_rsl(rsl);
    body.mutable_submit()->set_has_input(has_input);
    body.mutable_submit()->set_dry_run(dry_run);
    request.mutable_request()->set_body(body.SerializeAsString());
    grpc::ClientContext context;
    return queue_->Submit(&context, request, &reply);
  }
  std::string SubmitOk(const std::string& id, const std::string& rsl, bool has_input = false) {
    proto::SubmitReply reply;
    const grpc::Status status = Submit(id, rsl, reply, has_input);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.job_id();
  }
  grpc::Status Cancel(const std::string& job_id, const std::string& subject) {
    proto::QueueRequest request = Request("cancel " + job_id, subject);
    proto::RequestBody body;
    body.ParseFromString(request.request().body());
    body.mutable_cancel()->set_job_id(job_id);
    request.mutable_request()->set_body(body.SerializeAsString());
    grpc::ClientContext context;
    proto::CommandReply reply;
    return queue_->Command(&context, request, &reply);
  }
  // Reads events until one of `job_id` ends it, and says their kinds.
  std::vector<std::string> EventsToEnd(const std::string& job_id) {
    grpc::ClientContext context;
    proto::EventsRequest request;
    request.set_account("alice");
    auto stream = queue_->Events(&context, request);
    std::vector<std::string> kinds;
    proto::JobEvent event;
    while (stream->Read(&event)) {
      if (event.job_id() != job_id) continue;
      kinds.push_back(event.GetDescriptor()->FindFieldByNumber(int(event.kind_case()))->name());
      if (event.has_ended()) {
        ended_ = event.ended();
        break;
      }
    }
    context.TryCancel();
    return kinds;
  }
  std::string Output(const std::string& job_id, bool follow, int stream = 0, uint64_t offset = 0) {
    grpc::ClientContext context;
    proto::OutputRequest request;
    request.set_job_id(job_id);
    request.set_follow(follow);
    proto::OutputPosition& position = *request.add_position();
    position.set_stream(proto::OutputChunk::Stream(stream));
    position.set_offset(offset);
    auto reader = queue_->Output(&context, request);
    std::string data;
    proto::OutputChunk chunk;
    while (reader->Read(&chunk)) {
      if (chunk.stream() == stream) data += chunk.data();
    }
    EXPECT_TRUE(reader->Finish().ok());
    return data;
  }

  std::string state_;
  FakeAllocator allocator_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<proto::Queue::Stub> queue_;
  proto::JobEvent::Ended ended_;
};

TEST_F(ServerTest, RunsAJobFromItsRequestToItsEnd) {
  const auto agent = Attach("n1");

  const std::string job = SubmitOk("r1", "&(executable=/bin/x)(arguments=$(HOME))");
  const proto::ServerMessage::Start start = agent->NextStart();
  agent->Started(start.task());
  agent->Output(start.task(), 0, "hello\n");
  agent->Output(start.task(), 0, "oops\n", proto::OutputChunk::STDERR);
  agent->Exited(start.task(), 7, 6, 5);

  EXPECT_EQ(start.account(), "alice");
  EXPECT_THAT(start.argument(), ElementsAre("/bin/x", "/home/alice"));
  EXPECT_THAT(EventsToEnd(job), ElementsAre("submitted", "queued", "allocated", "task_started",
                                            "task_exited", "ended"));
  EXPECT_EQ(ended_.state(), proto::DONE);
  EXPECT_EQ(ended_.exit().code(), 7);
  EXPECT_EQ(Output(job, true), "hello\n");
  EXPECT_EQ(Output(job, false, 1), "oops\n");
  EXPECT_EQ(Output(job, true, 0, 4), "o\n");
  proto::ServerMessage last;
  while (!last.has_forget()) {
    last = agent->Next();
    ASSERT_NE(last.kind_case(), proto::ServerMessage::KIND_NOT_SET);
  }
}

TEST_F(ServerTest, SendsOutputWhileTheTaskRuns) {
  const auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  const proto::TaskKey key = agent->NextStart().task();
  agent->Started(key);
  grpc::ClientContext context;
  proto::OutputRequest request;
  request.set_job_id(job);
  request.set_follow(true);
  auto reader = queue_->Output(&context, request);

  proto::OutputChunk chunk;
  agent->Output(key, 0, "one");
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.data(), "one");
  agent->Output(key, 3, "two");
  ASSERT_TRUE(reader->Read(&chunk));
  EXPECT_EQ(chunk.offset(), 3u);
  agent->Exited(key, 0, 6, 0);

  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(ServerTest, RefusesAtOnceWhatCanNeverRunAndKeepsNothing) {
  proto::SubmitReply reply;
  const grpc::Status status = Submit("r1", "&(executable=/bin/x)(count=5)", reply);

  EXPECT_EQ(status.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("can never run here: asks for more than there is"));
  grpc::ClientContext context;
  proto::StatusRequest request;
  request.add_job_id(JobIdFor("siteA", "/CN=Alice", "r1"));
  proto::StatusReply jobs;
  ASSERT_TRUE(queue_->Status(&context, request, &jobs).ok());
  EXPECT_EQ(jobs.job(0).state(), proto::UNKNOWN);
}

TEST_F(ServerTest, RefusesWhatItDoesNotUnderstand) {
  proto::SubmitReply reply;
  EXPECT_THAT(Submit("r1", "&(executable=/bin/x)(colour=red)", reply).error_message(),
              HasSubstr("colour"));
  EXPECT_THAT(Submit("r2", "+(&(executable=/bin/x))", reply).error_message(),
              HasSubstr("several parts"));
  EXPECT_THAT(Submit("r3", "&(executable=$(NOPE))", reply).error_message(), HasSubstr("NOPE"));
  EXPECT_THAT(Submit("r4", "&(executable=/bin/x)(username=bob)", reply).error_message(),
              HasSubstr("username=bob"));
}

TEST_F(ServerTest, ARepeatedRequestIsTheSameJob) {
  const auto agent = Attach("n1");
  proto::SubmitReply first, second;

  ASSERT_TRUE(Submit("r1", "&(executable=/bin/x)", first).ok());
  ASSERT_TRUE(Submit("r1", "&(executable=/bin/x)", second).ok());

  EXPECT_FALSE(first.is_repeat());
  EXPECT_TRUE(second.is_repeat());
  EXPECT_EQ(first.job_id(), second.job_id());
}

TEST_F(ServerTest, AJobWaitsForANodeAndRunsWhenItComes) {
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");

  const auto agent = Attach("n1");
  const proto::TaskKey key = agent->NextStart().task();
  agent->Exited(key, 0);

  EXPECT_EQ(key.job_id(), job);
  EXPECT_THAT(EventsToEnd(job),
              ElementsAre("submitted", "queued", "waiting", "allocated", "task_exited", "ended"));
}

TEST_F(ServerTest, AJobIsKeptWhileTheAllocatorIsSilent) {
  allocator_.is_silent = true;
  const auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");

  allocator_.is_silent = false;
  EXPECT_EQ(agent->NextStart().task().job_id(), job);
}

TEST_F(ServerTest, ARestartLosesNothingAndStartsNothingTwice) {
  auto agent = Attach("n1");
  const std::string running = SubmitOk("r1", "&(executable=/bin/x)(count=2)");
  const proto::TaskKey first = agent->NextStart().task();
  const proto::TaskKey second = agent->NextStart().task();
  agent->Started(first);
  agent->Output(first, 0, "before ");
  const std::string waiting = SubmitOk("r2", "&(executable=/bin/x)");
  while (!agent->Next().has_output_taken()) {
  }
  agent.reset();

  Restart();
  agent = std::make_unique<Agent>(*server_, "n1", std::vector{first, second});
  const proto::ServerMessage welcome = agent->Next();
  ASSERT_EQ(welcome.welcome().resume_size(), 2);
  EXPECT_EQ(welcome.welcome().resume(0).stdout_offset(), 7u);
  agent->Output(first, 7, "after");
  agent->Exited(first, 0, 12);
  agent->Exited(second, 3);
  EXPECT_EQ(agent->NextStart().task().job_id(), waiting);

  EventsToEnd(running);
  EXPECT_EQ(ended_.exit().code(), 3);
  EXPECT_EQ(Output(running, false), "before after");
}

TEST_F(ServerTest, CancelKillsAndOnlyItsOwnerMay) {
  const auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  const proto::TaskKey key = agent->NextStart().task();
  agent->Started(key);

  EXPECT_EQ(Cancel(job, "/CN=Bob").error_code(), grpc::PERMISSION_DENIED);
  EXPECT_EQ(Cancel("aaaaaaaaaaaaa", "/CN=Alice").error_code(), grpc::NOT_FOUND);
  EXPECT_TRUE(Cancel(job, "/CN=Alice").ok());
  const proto::ServerMessage kill = agent->Next();
  EXPECT_EQ(kill.kill().signal(), 15);
  EXPECT_EQ(kill.kill().grace_ms(), 5000);
  agent->Exited(key, 0);

  EventsToEnd(job);
  EXPECT_EQ(ended_.state(), proto::CANCELLED);
}

TEST_F(ServerTest, ALostAgentChangesNoState) {
  auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/x)");
  const proto::TaskKey key = agent->NextStart().task();
  agent->Started(key);
  agent.reset();

  agent = Attach("n1", {key});
  agent->Exited(key, 0);
  EXPECT_THAT(EventsToEnd(job), ElementsAre("submitted", "queued", "allocated", "task_started",
                                            "task_exited", "ended"));
}

TEST_F(ServerTest, PassesInputToTheFirstTaskAndSaysWhatItTook) {
  const auto agent = Attach("n1");
  const std::string job = SubmitOk("r1", "&(executable=/bin/cat)", true);
  const proto::ServerMessage::Start start = agent->NextStart();
  EXPECT_TRUE(start.has_input());
  agent->Started(start.task());
  grpc::ClientContext context;
  proto::InputReply reply;
  auto writer = queue_->Input(&context, &reply);
  proto::InputChunk chunk;
  chunk.set_job_id(job);
  chunk.set_data("abc");
  chunk.set_end(true);
  writer->Write(chunk);

  const proto::ServerMessage input = agent->Next();
  EXPECT_EQ(input.input().data(), "abc");
  EXPECT_TRUE(input.input().end());
  proto::AgentMessage taken;
  *taken.mutable_input_taken()->mutable_task() = start.task();
  taken.mutable_input_taken()->set_offset(3);
  agent->Say(taken);

  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(reply.accepted(), 3u);
}

TEST_F(ServerTest, ADryRunTriesTheProgramAndLeavesNoJob) {
  const auto agent = Attach("n1");
  for (const int gram_code : {0, 5}) {
    std::thread node([&] {
      const proto::ServerMessage::Start start = agent->NextStart();
      EXPECT_TRUE(start.check_only());
      agent->Exited(start.task(), 0, 0, 0, gram_code);
    });
    proto::SubmitReply reply;
    const grpc::Status status = Submit("r1", "&(executable=/bin/x)", reply, false, true);
    node.join();
    EXPECT_EQ(status.ok(), gram_code == 0) << status.error_message();
    EXPECT_EQ(reply.dry_run(), gram_code == 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(state_ + "/spool"));
}

TEST_F(ServerTest, ServesOnlyJobmanagersAndNodes) {
  Restart(errors::NotAJobmanager("/CN=Eve"));
  proto::SubmitReply reply;
  EXPECT_EQ(Submit("r1", "&(executable=/bin/x)", reply).error_code(), grpc::PERMISSION_DENIED);
  grpc::ClientContext context;
  auto events = queue_->Events(&context, proto::EventsRequest());
  EXPECT_EQ(events->Finish().error_code(), grpc::PERMISSION_DENIED);

  Agent stranger(*server_, "stranger");
  EXPECT_EQ(stranger.Next().kind_case(), proto::ServerMessage::KIND_NOT_SET);
}

TEST_F(ServerTest, DiagnosesEveryHopBehindIt) {
  const auto agent = Attach("n1");
  grpc::ClientContext context;
  auto stream = queue_->Diagnose(&context, proto::DiagnoseRequest());
  std::vector<std::string> hops;
  for (proto::Hop hop; stream->Read(&hop);) {
    hops.push_back(hop.name() + (hop.is_ok() ? " ok" : " down"));
  }

  EXPECT_THAT(hops, ElementsAre("qserver ok", "allocator ok", "agent n1 ok", "agent n2 down"));
}

}  // namespace
}  // namespace sekisho::qserver
