// SPDX-License-Identifier: Apache-2.0
// The whole queue server in one process, with agents and jobmanagers that the test plays over gRPC.
#pragma once

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/job_state.h"
#include "qserver/errors.h"
#include "qserver/nodes_service.h"
#include "qserver/queue_service.h"
#include "qserver/staging.h"
#include "tests/support/eventually.h"

namespace sekisho::qserver {

inline const identity::Time kTestNow{std::chrono::seconds(1'800'000'000)};

// Every node that is up has two processors, and serves a queue of its name; more than four can never run.
class FakeAllocator final : public AllocatorLink {
 public:
  awaitable<absl::StatusOr<proto::DecideReply>> Decide(proto::DecideRequest request) override {
    if (is_silent) {
      co_return absl::UnavailableError("silent");
    }
    {
      const std::lock_guard lock(mutex_);
      asked_ = request;
    }
    std::map<std::string, int> free;
    for (const proto::NodeState& node : request.node()) free[node.name()] = node.is_drained() ? 0 : 2;
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
    if (is_silent) {
      co_return absl::UnavailableError("silent");
    }
    proto::InventoryReply reply;
    for (const std::string& name : names) {
      reply.add_node()->set_name(name);
    }
    co_return reply;
  }

  std::atomic<bool> is_silent = false;
  std::vector<std::string> names = {"n1", "n2"};  // of the inventory; before the server starts

  proto::DecideRequest Asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  mutable std::mutex mutex_;  // of the test's thread and the server's
  proto::DecideRequest asked_;
  static proto::Decision DecideOne(const proto::Demand& demand, std::map<std::string, int>& free) {
    proto::Decision decision;
    decision.set_job_id(demand.job_id());
    if (demand.processes() > 4) {
      decision.mutable_never()->set_reason("asks for more than there is");
      return decision;
    }
    int left = demand.processes();
    for (auto& [node, count] : free) {
      const bool is_served = demand.queue().empty() || demand.queue() == node;
      const int take = is_served ? std::min(left, count) : 0;
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
  Server(const std::string& state, FakeAllocator& allocator, absl::StatusOr<Jobmanager> caller,
         uint64_t spool_reserve)
      : work_(asio::make_work_guard(loop_)), spool_(state + "/spool", spool_reserve) {
    CHECK(spool_.Prepare().ok());
    store_ = *EventStore::Open(loop_, state + "/events.db");
    TaskSettings settings;
    settings.site = rules_.site = "siteA";
    rules_.administrators = {"/CN=Admin"};
    conductor_ = std::make_unique<Conductor>(loop_, *store_, spool_, allocator, settings, 0);
    CHECK(conductor_->Restore().ok());
    staging_ = std::make_unique<Staging>(loop_, *conductor_, Staging::Settings());
    known_nodes_ = std::make_unique<KnownNodes>(*store_);
    CHECK(known_nodes_->Restore().ok());
    QueueService::Judges judges;
    judges.caller = [caller](const auto&) { return caller; };
    judges.request = [this](const proto::QueueRequest& request) { return Judge(request); };
    judges.now = [] { return kTestNow; };
    judges.find_account = [](const std::string& name) -> absl::StatusOr<Account> {
      return name == "root" ? Account{"/root", 0} : Account{"/home/" + name, 1000};
    };
    queue_service_ = std::make_unique<QueueService>(loop_, *conductor_, rules_, std::move(judges));
    queue_service_->SetStaging(*staging_);
    nodes_service_ = std::make_unique<NodesService>(
        loop_, *conductor_, *known_nodes_, [](const auto&, const std::string& node) {
          return node == "stranger" ? errors::NotANode("/CN=x", node) : absl::OkStatus();
        },
        nullptr, std::chrono::milliseconds(1500));
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

  // Calls `act` where the server's own calls run, and waits for what it returns.
  template <typename Act>
  auto OnLoop(Act act) {
    std::packaged_task<decltype(act(*conductor_))()> task([&] { return act(*conductor_); });
    auto result = task.get_future();
    asio::post(loop_, [&] { task(); });
    return result.get();
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
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<KnownNodes> known_nodes_;
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
  void InputTaken(const proto::TaskKey& key, uint64_t offset, bool is_end) {
    proto::AgentMessage message;
    *message.mutable_input_taken()->mutable_task() = key;
    message.mutable_input_taken()->set_offset(offset);
    message.mutable_input_taken()->set_end(is_end);
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
  void Restart(absl::StatusOr<Jobmanager> caller = Jobmanager()) {
    server_.reset();
    server_ = std::make_unique<Server>(state_, allocator_, caller, spool_reserve_);
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
  grpc::Status DeclareLost(const std::string& node, const std::string& subject, proto::AdministerReply& reply) {
    proto::RequestBody::Administer word;
    word.mutable_lost()->set_node(node);
    return Administer("lost " + node, word, subject, reply);
  }
  grpc::Status Administer(const std::string& id, const proto::RequestBody::Administer& word, const std::string& subject,
                          proto::AdministerReply& reply) {
    proto::QueueRequest request = Request(id, subject);
    proto::RequestBody body;
    body.ParseFromString(request.request().body());
    *body.mutable_administer() = word;
    request.mutable_request()->set_body(body.SerializeAsString());
    grpc::ClientContext context;
    return queue_->Administer(&context, request, &reply);
  }
  // What an agent has said is heard later than it was said.
  bool Becomes(const std::string& job_id, proto::JobState state) {
    return test::Eventually([&] {
      grpc::ClientContext context;
      proto::StatusRequest request;
      proto::StatusReply reply;
      request.add_job_id(job_id);
      return queue_->Status(&context, request, &reply).ok() && reply.job_size() == 1 && reply.job(0).state() == state;
    });
  }
  // Reads events, which are all on disk, until one of `job_id` is of `last` kind, and says their kinds.
  std::vector<std::string> EventsTo(const std::string& last, const std::string& job_id) {
    grpc::ClientContext context;
    proto::EventsRequest request;
    request.set_account("alice");
    auto stream = queue_->Events(&context, request);
    std::vector<std::string> kinds;
    proto::JobEvent event;
    while ((kinds.empty() || kinds.back() != last) && stream->Read(&event)) {
      if (event.job_id() != job_id) continue;
      kinds.push_back(event.GetDescriptor()->FindFieldByNumber(int(event.kind_case()))->name());
      if (event.has_ended()) {
        ended_ = event.ended();
      }
    }
    context.TryCancel();
    return kinds;
  }
  std::vector<std::string> EventsToEnd(const std::string& job_id) { return EventsTo("ended", job_id); }
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

  uint64_t spool_reserve_ = 0;  // of the next server
  std::string state_;
  FakeAllocator allocator_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<proto::Queue::Stub> queue_;
  proto::JobEvent::Ended ended_;
};
}  // namespace sekisho::qserver
