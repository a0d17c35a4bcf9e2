// SPDX-License-Identifier: Apache-2.0
// A jobmanager whole but for its main(), between a client (as the gatekeeper speaks for it) and a
// queue server that does what the test says.
#pragma once

#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <asio/use_future.hpp>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/call_metadata.h"
#include "jobmanager/fake_queue.h"
#include "jobmanager/service.h"

namespace sekisho::jobmanager {

using proto::JobEvent;
using std::chrono::milliseconds;

inline constexpr const char* kAlice = kFakeSubject;
inline constexpr char kMallory[] = "/O=Grid/CN=Mallory";  // of the same account

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
  // Looks after every step of the loop's until it is so.
  void Until(const std::function<bool()>& condition) {
    for (bool is_so = false; !is_so;) {
      Do([&] { is_so = condition(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void Stop() {
    loop.stop();
    thread.join();
  }
};

// One jobmanager.  Killed, it leaves its memory behind, as gRPC may still write to it.
struct Manager {
  Manager(const std::string& directory, const std::string& address, milliseconds reach = milliseconds(400),
          milliseconds compare = milliseconds(300'000), Retention retention = *MakeRetention(1)) {
    store = *EventStore::Open(on.loop, directory + "/jobs.db");
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    queue = std::make_unique<QueueServer>(
        on.loop,
        QueueServer::Options{"siteA", address, "alice", reach, milliseconds(2000), compare, compare / 2},
        [address, arguments] {
          return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
        },
        [] { return absl::OkStatus(); });
    jobs = std::make_unique<Jobs>(on.loop, Here{"siteA", "/CN=gate"}, *store, *queue, retention);
    EXPECT_TRUE(jobs->Load().ok());
    on.Do([this] { jobs->Start(); });
    leaders = std::make_unique<Leaders>(
        on.loop, *store, directory + "/leads",
        [](const std::string&, const std::string&) { return std::shared_ptr<grpc::Channel>(); });
    service =
        std::make_unique<Service>(on.loop, *jobs, *leaders, "secret", std::vector<std::string>{"jobmanager"});
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + directory + "/socket", grpc::InsecureServerCredentials());
    builder.RegisterService(service.get());
    server = builder.BuildAndStart();
    stub = proto::JobService::NewStub(grpc::CreateCustomChannel(
        "unix:" + directory + "/socket", grpc::InsecureChannelCredentials(), arguments));
  }
  void Kill() {
    server->Shutdown(std::chrono::system_clock::now());
    on.Stop();
  }
  LoopThread on;
  std::unique_ptr<EventStore> store;
  std::unique_ptr<QueueServer> queue;
  std::unique_ptr<Jobs> jobs;
  std::unique_ptr<Leaders> leaders;
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
    static auto& kept = *new std::vector<Leftover>;  // found by LeakSanitizer at the very end
    return kept;
  }
  static std::vector<Manager*>& KeptManagers() {
    static auto& kept = *new std::vector<Manager*>;
    return kept;
  }

  void StartQueue(int port) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(queue_);
    queue_server_ = builder.BuildAndStart();
    ASSERT_NE(queue_server_, nullptr);
  }
  // Whether the jobmanager's disk has anything of the job.
  bool IsOnDisk(const std::string& id) {
    auto rows = asio::co_spawn(manager_->on.loop, manager_->store->Read(id), asio::use_future).get();
    EXPECT_TRUE(rows.ok()) << rows.status();
    return !rows->empty();
  }
  // What the inside has got so far, asked on its own thread.
  size_t Submits() {
    size_t count = 0;
    inside_->Do([&] { count = queue_->submits.size(); });
    return count;
  }
  std::vector<proto::RequestBody> Commands() {
    std::vector<proto::RequestBody> seen;
    inside_->Do([&] { seen = queue_->commands; });
    return seen;
  }
  std::string Input() {
    std::string seen;
    inside_->Do([&] { seen = queue_->input; });
    return seen;
  }
  void Unmute() {
    inside_->Do([this] { queue_->Speak(); });
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
    manager_ = new Manager(directory_, "127.0.0.1:" + std::to_string(port_), milliseconds(400), compare_, retention_);
    KeptManagers().push_back(manager_);
  }

  static std::unique_ptr<grpc::ClientContext> As(const std::string& subject,
                                                 const std::string& token = "secret") {
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
  static proto::SignedRequest Request(const std::string& id,
                                      const std::string& rsl = "&(executable=/bin/true)") {
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
  grpc::Status Cancel(const std::string& job_id, const std::string& subject = kAlice) {
    proto::RequestBody body;
    body.set_request_id("cancel-" + job_id);
    body.mutable_cancel()->set_job_id(job_id);
    proto::CommandReply reply;
    const auto context = As(subject);
    return manager_->stub->Command(context.get(), Carry(body), &reply);
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
  // The job's events to its end.
  std::unique_ptr<grpc::ClientReader<proto::Update>> Follow(grpc::ClientContext& context, const std::string& id) {
    proto::AttachRequest request;
    request.set_job_id(id);
    request.set_events(true);
    request.set_follow(true);
    return manager_->stub->Attach(&context, request);
  }
  // Follows the job's events until `state`; the wait is the server's, not ours.
  void WaitFor(const std::string& id, proto::JobState state) {
    const auto context = As(kAlice);
    const auto reader = Follow(*context, id);
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
      queue_->Emit(id, [&](JobEvent& event) {
        event.mutable_task_exited()->mutable_exit()->set_code(code);
      });
      queue_->Emit(id, [&](JobEvent& event) {
        event.mutable_ended()->set_state(proto::DONE);
        event.mutable_ended()->mutable_exit()->set_code(code);
      });
    });
  }
  static std::string Job(const std::string& request_id) {
    return JobIdFor("siteA", kAlice, request_id);
  }

  std::string directory_;
  LoopThread* inside_ = nullptr;
  FakeQueue* queue_ = nullptr;
  std::unique_ptr<grpc::Server> queue_server_;
  int port_ = 0;
  milliseconds compare_{300'000};
  Retention retention_ = *MakeRetention(1);
  Manager* manager_ = nullptr;
};
}  // namespace sekisho::jobmanager
