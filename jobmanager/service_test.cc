// SPDX-License-Identifier: Apache-2.0
// A jobmanager whole but for its main(), between a client (as the gatekeeper speaks for it) and a queue
// server that does what the test says.
#include "jobmanager/service.h"

#include <filesystem>
#include <future>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/call_metadata.h"
#include "common/job_state.h"

namespace sekisho::jobmanager {
namespace {

using proto::JobEvent;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr char kAlice[] = "/O=Grid/CN=Alice";
constexpr char kMallory[] = "/O=Grid/CN=Mallory";  // of the same account

// All on its loop, which outlives every jobmanager of the test.
class FakeQueue final : public proto::Queue::CallbackService {
 public:
  explicit FakeQueue(Loop& loop) : loop_(loop), changed_(loop) {}

  std::function<absl::Status(const proto::RequestBody&)> on_submit = [](const auto&) {
    return absl::OkStatus();
  };
  std::vector<proto::RequestBody> submits;
  std::vector<proto::RequestBody> commands;
  std::map<std::string, std::string> output;  // of task 0, by job
  std::string input;

  void Emit(JobEvent event) {
    event.set_sequence(log_.size() + 1);
    log_.push_back(event);
    changed_.Notify();
  }
  void Emit(const std::string& id, const std::function<void(JobEvent&)>& fill) {
    JobEvent event;
    event.set_job_id(id);
    event.set_time_ms(std::chrono::duration_cast<milliseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count());
    fill(event);
    Emit(event);
  }

 private:
  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context, const proto::QueueRequest* request,
                                   proto::SubmitReply* reply) override {
    return rpc::Unary(loop_, context, [this, request, reply]() -> awaitable<absl::Status> {
      proto::RequestBody body;
      body.ParseFromString(request->request().body());
      submits.push_back(body);
      CO_RETURN_IF_ERROR(on_submit(body));
      const std::string id = JobIdFor("siteA", kAlice, body.request_id());
      if (!known_.insert(id).second) {
        reply->set_is_repeat(true);
      } else {
        Emit(id, [](JobEvent& event) { event.mutable_queued(); });
      }
      reply->set_job_id(id);
      reply->set_site("siteA");
      co_return absl::OkStatus();
    });
  }
  grpc::ServerUnaryReactor* Command(grpc::CallbackServerContext* context, const proto::QueueRequest* request,
                                    proto::CommandReply* reply) override {
    return rpc::Unary(loop_, context, [this, request, reply]() -> awaitable<absl::Status> {
      proto::RequestBody body;
      body.ParseFromString(request->request().body());
      commands.push_back(body);
      reply->set_state(proto::CANCELLED);
      co_return absl::OkStatus();
    });
  }
  grpc::ServerWriteReactor<JobEvent>* Events(grpc::CallbackServerContext*,
                                             const proto::EventsRequest* request) override {
    return rpc::Stream<JobEvent>(loop_, [this, after = request->after_sequence()](auto& writer) {
      return SendEvents(writer, after);
    });
  }
  awaitable<absl::Status> SendEvents(rpc::Writer<JobEvent>& writer, size_t next) {
    for (;;) {
      while (next < log_.size()) {
        const JobEvent event = log_[next++];
        if (!co_await writer.Write(event)) {
          co_return absl::OkStatus();
        }
      }
      co_await changed_.Wait();
    }
  }
  grpc::ServerWriteReactor<proto::OutputChunk>* Output(grpc::CallbackServerContext*,
                                                       const proto::OutputRequest* request) override {
    return rpc::Stream<proto::OutputChunk>(
        loop_, [this, wanted = *request](auto& writer) { return SendOutput(writer, wanted); });
  }
  awaitable<absl::Status> SendOutput(rpc::Writer<proto::OutputChunk>& writer, proto::OutputRequest wanted) {
    uint64_t offset = wanted.position_size() > 0 ? wanted.position(0).offset() : 0;
    for (;;) {
      const std::string& all = output[wanted.job_id()];
      if (offset < all.size()) {
        proto::OutputChunk chunk;
        chunk.set_offset(offset);
        chunk.set_data(all.substr(offset, 4));
        offset += chunk.data().size();
        if (!co_await writer.Write(chunk)) {
          co_return absl::OkStatus();
        }
        continue;
      }
      for (const JobEvent& event : log_) {
        if (event.job_id() == wanted.job_id() && event.has_ended()) {
          co_return absl::OkStatus();
        }
      }
      if (!wanted.follow()) {
        co_return absl::OkStatus();
      }
      co_await changed_.Wait();
    }
  }
  grpc::ServerReadReactor<proto::InputChunk>* Input(grpc::CallbackServerContext*,
                                                    proto::InputReply* reply) override {
    return rpc::Receive<proto::InputChunk>(loop_, [this, reply](auto& reader) { return Take(reader, *reply); });
  }
  awaitable<absl::Status> Take(rpc::Reader<proto::InputChunk>& reader, proto::InputReply& reply) {
    proto::InputChunk chunk;
    while (co_await reader.Read(chunk)) {
      input += chunk.data();
    }
    reply.set_accepted(input.size());
    co_return absl::OkStatus();
  }
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context, const proto::StatusRequest*,
                                   proto::StatusReply*) override {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerUnaryReactor* Site(grpc::CallbackServerContext* context, const proto::SiteRequest*,
                                 proto::SiteInfo* reply) override {
    reply->set_site("siteA");
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
  grpc::ServerWriteReactor<proto::Hop>* Diagnose(grpc::CallbackServerContext*,
                                                 const proto::DiagnoseRequest*) override {
    return rpc::Stream<proto::Hop>(loop_, [](auto& writer) { return SendHops(writer); });
  }
  static awaitable<absl::Status> SendHops(rpc::Writer<proto::Hop>& writer) {
    for (const char* name : {"qserver", "allocator"}) {
      proto::Hop hop;
      hop.set_name(name);
      hop.set_is_ok(true);
      co_await writer.Write(hop);
    }
    co_return absl::OkStatus();
  }

  Loop& loop_;
  Signal changed_;
  std::vector<JobEvent> log_;
  std::set<std::string> known_;
};

// A loop with its thread.
struct LoopThread {
  Loop loop{1};
  asio::executor_work_guard<Loop::executor_type> work = asio::make_work_guard(loop);
  std::thread thread{[this] { loop.run(); }};
  void Do(const std::function<void()>& action) {
    std::promise<void> done;
    asio::post(loop, [&] {
      action();
      done.set_value();
    });
    done.get_future().get();
  }
  void Stop() {
    loop.stop();
    thread.join();
  }
};

// One jobmanager.  Killed, it leaves its memory behind, as gRPC may still write to it.
struct Manager {
  Manager(const std::string& directory, const std::string& address) {
    store = *EventStore::Open(on.loop, directory + "/jobs.db");
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    queue = std::make_unique<QueueServer>(
        on.loop,
        QueueServer::Options{"siteA", address, "alice", milliseconds(400), milliseconds(2000)},
        [address, arguments] {
          return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
        },
        [] { return absl::OkStatus(); });
    jobs = std::make_unique<Jobs>(on.loop, Here{"siteA", "/CN=gate"}, *store, *queue, std::chrono::hours(24));
    EXPECT_TRUE(jobs->Load().ok());
    on.Do([this] { jobs->Start(); });
    service = std::make_unique<Service>(on.loop, *jobs, "secret", std::vector<std::string>{"jobmanager"});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + directory + "/socket", grpc::InsecureServerCredentials());
    builder.RegisterService(service.get());
    server = builder.BuildAndStart();
    stub = proto::JobService::NewStub(
        grpc::CreateCustomChannel("unix:" + directory + "/socket", grpc::InsecureChannelCredentials(), arguments));
  }
  void Kill() {
    server->Shutdown(std::chrono::system_clock::now());
    on.Stop();
  }
  LoopThread on;
  std::unique_ptr<EventStore> store;
  std::unique_ptr<QueueServer> queue;
  std::unique_ptr<Jobs> jobs;
  std::unique_ptr<Service> service;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<proto::JobService::Stub> stub;
};

class JobManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sekisho-jm-XXXXXX";
    directory_ = mkdtemp(name);
    inside_ = new LoopThread;  // left behind, as Manager is
    queue_ = new FakeQueue(inside_->loop);
    StartQueue(0);
    Restart();
  }
  void TearDown() override {
    manager_->Kill();
    StopQueue();
    inside_->Stop();
    Kept().push_back({inside_, queue_});
    std::filesystem::remove_all(directory_);
  }

  struct Leftover {
    LoopThread* loop;
    FakeQueue* queue;
  };
  static std::vector<Leftover>& Kept() {
    static std::vector<Leftover> kept;
    return kept;
  }
  static std::vector<Manager*>& KeptManagers() {
    static std::vector<Manager*> kept;
    return kept;
  }

  void StartQueue(int port) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(queue_);
    queue_server_ = builder.BuildAndStart();
    ASSERT_NE(queue_server_, nullptr);
  }
  void StopQueue() {
    if (queue_server_) {
      queue_server_->Shutdown(std::chrono::system_clock::now());
      queue_server_.reset();
    }
  }
  void Restart() {
    if (manager_ != nullptr) {
      manager_->Kill();
    }
    manager_ = new Manager(directory_, "127.0.0.1:" + std::to_string(port_));
    KeptManagers().push_back(manager_);
  }

  static std::unique_ptr<grpc::ClientContext> As(const std::string& subject, const std::string& token = "secret") {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    context->AddMetadata(metadata::kSubject, subject);
    context->AddMetadata(metadata::kAccount, "alice");
    context->AddMetadata(metadata::kService, "jobmanager");
    context->AddMetadata(metadata::kPeer, "192.0.2.1:1");
    context->AddMetadata(metadata::kToken, token);
    return context;
  }
  static proto::SignedRequest Carry(const proto::RequestBody& body) {
    proto::SignedRequest request;
    request.set_body(body.SerializeAsString());
    return request;
  }
  static proto::SignedRequest Request(const std::string& id, const std::string& rsl = "&(executable=/bin/true)") {
    proto::RequestBody body;
    body.set_request_id(id);
    body.mutable_submit()->set_rsl(rsl);
    return Carry(body);
  }
  absl::StatusOr<proto::SubmitReply> Submit(const proto::SignedRequest& request,
                                            const std::string& subject = kAlice) {
    proto::SubmitReply reply;
    const auto context = As(subject);
    const grpc::Status status = manager_->stub->Submit(context.get(), request, &reply);
    if (!status.ok()) {
      return FromGrpc(status);
    }
    return reply;
  }
  proto::JobStatus StatusOf(const std::string& id, const std::string& subject = kAlice) {
    proto::StatusRequest request;
    request.add_job_id(id);
    proto::StatusReply reply;
    const auto context = As(subject);
    EXPECT_TRUE(manager_->stub->Status(context.get(), request, &reply).ok());
    return reply.job_size() == 1 ? reply.job(0) : proto::JobStatus();
  }
  int JobCount() {
    proto::ListRequest request;
    request.set_all(true);
    proto::StatusReply reply;
    const auto context = As(kAlice);
    EXPECT_TRUE(manager_->stub->List(context.get(), request, &reply).ok());
    return reply.job_size();
  }
  // Follows the job's events until `state`; the wait is the server's, not ours.
  void WaitFor(const std::string& id, proto::JobState state) {
    proto::AttachRequest request;
    request.set_job_id(id);
    request.set_events(true);
    request.set_follow(true);
    const auto context = As(kAlice);
    auto reader = manager_->stub->Attach(context.get(), request);
    proto::JobStatus seen;
    proto::Update update;
    while (seen.state() != state && reader->Read(&update)) {
      if (update.has_event()) {
        ASSERT_TRUE(Fold(update.event(), seen).ok());
      }
    }
    EXPECT_EQ(seen.state(), state);
    context->TryCancel();
    reader->Finish();
  }
  void EmitEnd(const std::string& id, const std::string& output = "", int code = 0) {
    inside_->Do([&] {
      queue_->output[id] += output;
      queue_->Emit(id, [](JobEvent& event) { event.mutable_task_started()->set_node("n1"); });
      queue_->Emit(id, [&](JobEvent& event) { event.mutable_task_exited()->mutable_exit()->set_code(code); });
      queue_->Emit(id, [&](JobEvent& event) {
        event.mutable_ended()->set_state(proto::DONE);
        event.mutable_ended()->mutable_exit()->set_code(code);
      });
    });
  }
  static std::string Job(const std::string& request_id) { return JobIdFor("siteA", kAlice, request_id); }

  std::string directory_;
  LoopThread* inside_ = nullptr;
  FakeQueue* queue_ = nullptr;
  std::unique_ptr<grpc::Server> queue_server_;
  int port_ = 0;
  Manager* manager_ = nullptr;
};

TEST_F(JobManagerTest, TakesAJobInAndShowsItsWayToTheEnd) {
  const auto reply = Submit(Request("r1"));
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->job_id(), Job("r1"));
  EXPECT_EQ(reply->account(), "alice");
  EXPECT_FALSE(reply->is_repeat());
  WaitFor(reply->job_id(), proto::PENDING);

  EmitEnd(reply->job_id(), "", 3);
  WaitFor(reply->job_id(), proto::DONE);

  const proto::JobStatus status = StatusOf(reply->job_id());
  EXPECT_EQ(status.exit().code(), 3);
  EXPECT_EQ(status.executable(), "/bin/true");
}

TEST_F(JobManagerTest, RunStreamsEventsAndAllOutputThenTheStatus) {
  const auto context = As(kAlice);
  auto reader = manager_->stub->Run(context.get(), Request("r1"));
  proto::Update update;
  ASSERT_TRUE(reader->Read(&update));
  ASSERT_TRUE(update.has_submitted());

  EmitEnd(Job("r1"), "hello, wide world\n");
  std::string output;
  int events = 0;
  while (reader->Read(&update) && !update.has_status()) {
    output += update.output().data();
    events += update.has_event();
    EXPECT_FALSE(update.event().submitted().has_request());
  }

  EXPECT_EQ(output, "hello, wide world\n");
  EXPECT_EQ(events, 5);  // submitted, queued, started, exited, ended
  EXPECT_EQ(update.status().state(), proto::DONE);
  EXPECT_FALSE(reader->Read(&update));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(JobManagerTest, RunOfAKnownRequestShowsTheSameJobFromTheStart) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  EmitEnd(Job("r1"), "once");
  WaitFor(Job("r1"), proto::DONE);

  const auto context = As(kAlice);
  auto reader = manager_->stub->Run(context.get(), Request("r1"));
  proto::Update update;
  std::string output;
  ASSERT_TRUE(reader->Read(&update));
  EXPECT_TRUE(update.submitted().is_repeat());
  while (reader->Read(&update)) {
    output += update.output().data();
  }

  EXPECT_EQ(output, "once");
  EXPECT_EQ(update.status().state(), proto::DONE);
  EXPECT_EQ(queue_->submits.size(), 1u);
}

TEST_F(JobManagerTest, AttachGoesOnWhereTheClientWas) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  EmitEnd(Job("r1"), "0123456789");
  WaitFor(Job("r1"), proto::DONE);

  proto::AttachRequest request;
  request.set_job_id(Job("r1"));
  request.set_events(true);
  request.set_output(true);
  request.set_after_sequence(3);
  request.add_position()->set_offset(7);
  const auto context = As(kAlice);
  auto reader = manager_->stub->Attach(context.get(), request);
  proto::Update update;
  std::string output;
  std::vector<uint64_t> sequences;
  while (reader->Read(&update)) {
    output += update.output().data();
    if (update.has_event()) {
      sequences.push_back(update.event().sequence());
    }
  }

  EXPECT_EQ(output, "789");
  EXPECT_THAT(sequences, testing::ElementsAre(4));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(JobManagerTest, TheSameRequestIsTheSameJobAndAnotherRslIsRefused) {
  ASSERT_TRUE(Submit(Request("r1", "&(executable=/bin/true)(count=2)")).ok());

  const auto again = Submit(Request("r1", "& (executable = /bin/true) (count = \"2\")"));
  const auto other = Submit(Request("r1", "&(executable=/bin/false)"));

  EXPECT_TRUE(again.ok() && again->is_repeat());
  EXPECT_EQ(other.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(queue_->submits.size(), 1u);
}

TEST_F(JobManagerTest, RefusesBadRslWithItsNumberAndTellsNobody) {
  const auto reply = Submit(Request("r1", "&(executable=/bin/true)(count=none)"));

  EXPECT_EQ(GramCode(reply.status()), 14);
  EXPECT_EQ(JobCount(), 0);
  EXPECT_EQ(queue_->submits.size(), 0u);
}

TEST_F(JobManagerTest, PassesARefusalOfTheQueueServerOnAndKeepsNothing) {
  inside_->Do([this] {
    queue_->on_submit = [](const auto&) {
      return Refuse(absl::StatusCode::kPermissionDenied, 7, "mapped to alice outside, to al inside", "ask root");
    };
  });

  const auto reply = Submit(Request("r1"));

  EXPECT_EQ(reply.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Message(reply.status()), "mapped to alice outside, to al inside");
  EXPECT_EQ(Remedy(reply.status()), "ask root");
  EXPECT_EQ(JobCount(), 0);
  EXPECT_EQ(StatusOf(Job("r1")).state(), proto::UNKNOWN);
  Restart();
  EXPECT_EQ(JobCount(), 0);
}

TEST_F(JobManagerTest, RefusesASubmitWhenTheQueueServerIsDownNamingTheHop) {
  StopQueue();

  const auto reply = Submit(Request("r1"));

  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(reply.status()), HasSubstr("the queue server of siteA does not run: the connection is refused"));
  EXPECT_THAT(Remedy(reply.status()), HasSubstr("nothing was submitted"));
  EXPECT_EQ(JobCount(), 0);
}

TEST_F(JobManagerTest, GoesOnWithTheQueueServerWhenItIsBack) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  WaitFor(Job("r1"), proto::PENDING);
  StopQueue();
  EmitEnd(Job("r1"));  // happens inside while nobody hears of it

  StartQueue(port_);

  WaitFor(Job("r1"), proto::DONE);
  EXPECT_TRUE(Submit(Request("r2")).ok());
}

TEST_F(JobManagerTest, AsksAgainWhenTheAnswerToASubmitIsLost) {
  inside_->Do([this] {
    queue_->on_submit = [this](const auto&) {
      return queue_->submits.size() == 1 ? absl::Status(absl::StatusCode::kUnavailable, "Socket closed")
                                         : absl::OkStatus();
    };
  });

  const auto reply = Submit(Request("r1"));

  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(StatusOf(Job("r1")).reason(), "the queue server does not answer; it is asked again");
  WaitFor(Job("r1"), proto::PENDING);
  EXPECT_EQ(queue_->submits.size(), 2u);
  EXPECT_EQ(StatusOf(Job("r1")).reason(), "");
}

TEST_F(JobManagerTest, SubmitsAfterARestartWhatWasNotConfirmed) {
  inside_->Do([this] {
    queue_->on_submit = [](const auto&) { return absl::Status(absl::StatusCode::kUnavailable, "Socket closed"); };
  });
  ASSERT_TRUE(Submit(Request("r1")).ok());

  inside_->Do([this] { queue_->on_submit = [](const auto&) { return absl::OkStatus(); }; });
  Restart();

  WaitFor(Job("r1"), proto::PENDING);
}

TEST_F(JobManagerTest, FailsAJobThatIsRefusedAfterTheUserWasToldOfIt) {
  inside_->Do([this] {
    queue_->on_submit = [this](const auto&) {
      return queue_->submits.size() == 1 ? absl::Status(absl::StatusCode::kUnavailable, "Socket closed")
                                         : Refuse(absl::StatusCode::kInvalidArgument, 37, "no such queue", "x");
    };
  });
  ASSERT_TRUE(Submit(Request("r1")).ok());

  WaitFor(Job("r1"), proto::FAILED);

  EXPECT_EQ(StatusOf(Job("r1")).gram_code(), 37);
  EXPECT_EQ(StatusOf(Job("r1")).reason(), "refused by the queue server: no such queue");
}

TEST_F(JobManagerTest, KnowsItsJobsAfterBeingKilled) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  WaitFor(Job("r1"), proto::PENDING);
  EmitEnd(Job("r1"), "", 4);
  WaitFor(Job("r1"), proto::DONE);

  Restart();

  WaitFor(Job("r1"), proto::DONE);  // from our disk, or once more from the queue server
  EXPECT_EQ(StatusOf(Job("r1")).exit().code(), 4);
  EXPECT_TRUE(Submit(Request("r1"))->is_repeat());
}

TEST_F(JobManagerTest, TakesOverJobsFromTheQueueServerWhenItsOwnDatabaseIsLost) {
  inside_->Do([this] {
    JobEvent event;
    event.set_job_id(Job("r7"));
    event.mutable_submitted()->set_subject(kAlice);
    event.mutable_submitted()->set_account("alice");
    queue_->Emit(event);
    queue_->Emit(Job("r7"), [](JobEvent& queued) { queued.mutable_queued(); });
    queue_->Emit(Job("rX"), [](JobEvent& last) { last.mutable_queued(); });
  });
  ASSERT_TRUE(Submit(Request("r8")).ok());
  WaitFor(Job("r8"), proto::PENDING);  // its event comes after those

  EXPECT_EQ(StatusOf(Job("r7")).state(), proto::PENDING);
}

TEST_F(JobManagerTest, HidesAJobFromAnotherSubjectOfTheAccount) {
  ASSERT_TRUE(Submit(Request("r1")).ok());

  const proto::JobStatus status = StatusOf(Job("r1"), kMallory);
  EXPECT_EQ(status.state(), proto::UNKNOWN);
  EXPECT_EQ(status.subject(), "");

  proto::AttachRequest attach;
  attach.set_job_id(Job("r1"));
  attach.set_output(true);
  const auto context = As(kMallory);
  auto reader = manager_->stub->Attach(context.get(), attach);
  proto::Update update;
  EXPECT_FALSE(reader->Read(&update));
  EXPECT_EQ(reader->Finish().error_message(), "there is no job '" + Job("r1") + "' here");

  proto::RequestBody cancel;
  cancel.set_request_id("c1");
  cancel.mutable_cancel()->set_job_id(Job("r1"));
  proto::CommandReply reply;
  const auto command_context = As(kMallory);
  const auto refused = manager_->stub->Command(command_context.get(), Carry(cancel), &reply);
  EXPECT_EQ(refused.error_message(), "there is no job '" + Job("r1") + "' here");
  EXPECT_EQ(queue_->commands.size(), 0u);
}

TEST_F(JobManagerTest, ServesNobodyWithoutTheGatekeepersToken) {
  for (const char* token : {"", "wrong!", "secret0"}) {
    proto::StatusReply reply;
    const auto context = As(kAlice, token);
    EXPECT_EQ(manager_->stub->List(context.get(), {}, &reply).error_code(), grpc::UNAUTHENTICATED);
  }
}

TEST_F(JobManagerTest, PassesCommandsAndInputInside) {
  ASSERT_TRUE(Submit(Request("r1")).ok());
  proto::RequestBody cancel;
  cancel.set_request_id("c1");
  cancel.mutable_cancel()->set_job_id(Job("r1"));
  proto::CommandReply reply;
  const auto context = As(kAlice);
  EXPECT_TRUE(manager_->stub->Command(context.get(), Carry(cancel), &reply).ok());
  EXPECT_EQ(queue_->commands.size(), 1u);

  proto::InputReply accepted;
  const auto input_context = As(kAlice);
  auto writer = manager_->stub->Input(input_context.get(), &accepted);
  proto::InputChunk chunk;
  chunk.set_job_id(Job("r1"));
  for (const char* part : {"one ", "two"}) {
    chunk.set_data(part);
    EXPECT_TRUE(writer->Write(chunk));
  }
  writer->WritesDone();

  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_EQ(accepted.accepted(), 7u);
  EXPECT_EQ(queue_->input, "one two");
}

TEST_F(JobManagerTest, ADryRunAsksTheQueueServerAndLeavesNothing) {
  proto::RequestBody body;
  body.set_request_id("r1");
  body.mutable_submit()->set_rsl("&(executable=/bin/true)");
  body.mutable_submit()->set_dry_run(true);

  const auto reply = Submit(Carry(body));

  ASSERT_TRUE(reply.ok());
  EXPECT_TRUE(reply->dry_run());
  EXPECT_EQ(queue_->submits.size(), 1u);
  EXPECT_EQ(JobCount(), 0);
}

TEST_F(JobManagerTest, DiagnosesUpToTheFirstHopThatFails) {
  const auto hops = [this] {
    std::string names;
    const auto context = As(kAlice);
    auto reader = manager_->stub->Diagnose(context.get(), {});
    proto::Hop hop;
    while (reader->Read(&hop)) {
      names += hop.name() + (hop.is_ok() ? " ok, " : " " + hop.detail());
    }
    EXPECT_TRUE(reader->Finish().ok());
    return names;
  };

  EXPECT_EQ(hops(), "jobmanager ok, pinhole ok, qserver ok, allocator ok, ");
  StopQueue();
  EXPECT_THAT(hops(), HasSubstr("jobmanager ok, pinhole the queue server of siteA does not run"));
}

TEST_F(JobManagerTest, ServesManySubmitsAtOnce) {
  std::vector<std::thread> clients;
  std::atomic<int> accepted = 0;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < 20; ++i) {
        accepted += Submit(Request(std::to_string(client) + "-" + std::to_string(i))).ok();
      }
    });
  }
  for (auto& client : clients) {
    client.join();
  }

  EXPECT_EQ(accepted, 160);
  EXPECT_EQ(JobCount(), 160);
}

}  // namespace
}  // namespace sekisho::jobmanager
