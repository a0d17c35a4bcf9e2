// SPDX-License-Identifier: Apache-2.0
// For tests: an agent, its queue server and a place for tasks, cleaned up and checked for remains.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "agent/agent_harness.h"
#include "tests/support/eventually.h"

namespace sekisho::agent {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// A script that waits for the file `go`.
inline constexpr char kUntilGo[] = "echo ready; while [ ! -e go ]; do sleep 0.01; done; ";

class AgentTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::signal(SIGCHLD, SIG_IGN);
  }

  void SetUp() override {
    char path[] = "/tmp/sekisho-agent-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
    chmod(path, 0755);
    mkdir((root_ + "/home").c_str(), 0777);
    chmod((root_ + "/home").c_str(), 0777);
    std::random_device random;
    place_ = *PrepareCgroup("auto", "test" + std::to_string(random()));
    server_.account = AccountName();
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&server_);
    grpc_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
    StartAgent();
  }

  void TearDown() override {
    if (!agent_) {
      StartAgent();
    }
    for (const std::string& job : {std::string("job"), std::string("other")}) {
      proto::ServerMessage message;
      message.mutable_forget()->set_job_id(job);
      if (server_.is_attached()) {
        server_.Send(message);
      }
    }
    EXPECT_TRUE(Await([&] { return ListTaskDirectories(State()).empty(); }));
    StopAgent();
    grpc_->Shutdown(std::chrono::system_clock::now());
    loop_.restart();
    loop_.run_for(50ms);
    if (!place_.parent.empty()) {
      EXPECT_EQ(rmdir(place_.parent.c_str()), 0) << "a task's cgroup is left behind";
    }
    fs::remove_all(root_);
  }

  static std::string AccountName() { return getuid() == 0 ? "games" : getpwuid(getuid())->pw_name; }
  std::string State() const { return root_ + "/state"; }
  void StartAgent() {
    agent_ = std::make_unique<Agent>(loop_, root_, address_, place_, boot_id_, output_limit_, hello_every_);
    server_.hello.reset();
    ASSERT_TRUE(Await([&] { return server_.hello && agent_->outbox.is_connected(); }));
  }
  // What is on disk and in the kernel is all that a killed agent leaves, too.
  void StopAgent() {
    agent_->session->Stop();
    ASSERT_TRUE(Await([&] { return !server_.is_attached() && !agent_->outbox.is_connected(); }));
    agent_.reset();
  }

  template <typename Condition>
  [[nodiscard]] bool Await(Condition is_true) {
    return test::EventuallyOn(loop_, is_true);
  }

  proto::ServerMessage StartMessage(const std::string& script, const std::string& job = "job",
                                    int task = 0) {
    proto::ServerMessage message;
    proto::ServerMessage::Start& start = *message.mutable_start();
    start.mutable_task()->set_job_id(job);
    start.mutable_task()->set_task(task);
    start.set_account(AccountName());
    start.set_directory(root_ + "/home");
    start.set_umask(022);
    for (const std::string& argument : {std::string("/bin/sh"), std::string("-c"), script}) {
      start.add_argument(argument);
    }
    return message;
  }
  void Start(const std::string& script, const std::string& job = "job", int task = 0) {
    server_.Send(StartMessage(script, job, task));
  }
  void Kill(const std::string& job, int signal, int64_t grace_ms) {
    proto::ServerMessage message;
    message.mutable_kill()->set_job_id(job);
    message.mutable_kill()->set_signal(signal);
    message.mutable_kill()->set_grace_ms(grace_ms);
    server_.Send(message);
  }
  FakeServer::Seen& Task(int task = 0, const std::string& job = "job") {
    return server_.seen[{job, task}];
  }
  [[nodiscard]] bool AwaitEnd(int task = 0, const std::string& job = "job") {
    return Await([&] { return server_.IsComplete({job, task}); });
  }
  bool Exists(const std::string& name) { return fs::exists(root_ + "/home/" + name); }
  std::string TextOf(const std::string& name) {
    std::ifstream file(root_ + "/home/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void Touch(const std::string& name) { std::ofstream(root_ + "/home/" + name) << ""; }

  Loop loop_{1};
  FakeServer server_{loop_};
  std::unique_ptr<grpc::Server> grpc_;
  std::unique_ptr<Agent> agent_;
  std::string root_;
  std::string address_;
  std::string boot_id_ = "boot-1";
  uint64_t output_limit_ = 0;
  std::chrono::milliseconds hello_every_ = 30s;
  CgroupPlace place_;
};

}  // namespace sekisho::agent
