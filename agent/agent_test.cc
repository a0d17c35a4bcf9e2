// SPDX-License-Identifier: Apache-2.0
// The agent against a queue server of the test, with real tasks.
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
#include "agent/task/group.h"

namespace sekisho::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

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

  std::string State() const { return root_ + "/state"; }
  void StartAgent() {
    agent_ = std::make_unique<Agent>(loop_, root_, address_, place_, boot_id_, output_limit_);
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
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!is_true()) {
      loop_.restart();
      loop_.run_one_until(std::min(deadline, std::chrono::steady_clock::now() + 20ms));
      if (std::chrono::steady_clock::now() >= deadline) {
        return false;
      }
    }
    return true;
  }

  proto::ServerMessage StartMessage(const std::string& script, const std::string& job = "job",
                                    int task = 0) {
    proto::ServerMessage message;
    proto::ServerMessage::Start& start = *message.mutable_start();
    start.mutable_task()->set_job_id(job);
    start.mutable_task()->set_task(task);
    start.set_account(getuid() == 0 ? "games" : getpwuid(getuid())->pw_name);
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
  CgroupPlace place_;
};

constexpr char kUntilGo[] = "echo ready; while [ ! -e go ]; do sleep 0.01; done; ";

TEST_F(AgentTest, RunsATaskAndTellsItsLife) {
  Start("echo out; echo err >&2; exit 7");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().started, 1);
  EXPECT_EQ(Task().exits, 1);
  EXPECT_EQ(Task().exited->exit().code(), 7);
  EXPECT_EQ(Task().output[0], "out\n");
  EXPECT_EQ(Task().output[1], "err\n");
  EXPECT_EQ(agent_->tasks->running(), 0U);
}

TEST_F(AgentTest, StartIsIdempotent) {
  Start("echo once >> ran");
  Start("echo once >> ran");
  ASSERT_TRUE(AwaitEnd());
  Start("echo once >> ran");
  ASSERT_TRUE(Await([&] { return Task().exits == 2; }));

  EXPECT_EQ(TextOf("ran"), "once\n");
}

TEST_F(AgentTest, GivesATaskTheAccountsBasics) {
  auto start = StartMessage("echo $HOME $USER $LOGNAME $SHELL $PATH $A; cat \"$F\"; umask");
  (*start.mutable_start()->mutable_environment())["A"] = "b";
  (*start.mutable_start()->mutable_environment())["F"] = "@FILES@/machines";
  (*start.mutable_start()->mutable_file())["machines"] = "n1\nn2\n";
  server_.Send(start);
  ASSERT_TRUE(AwaitEnd());

  const passwd* account = getpwnam(start.start().account().c_str());
  EXPECT_EQ(Task().output[0], std::string(account->pw_dir) + " " + account->pw_name + " " +
                                  account->pw_name + " " + account->pw_shell +
                                  " /usr/local/bin:/usr/bin:/bin b\nn1\nn2\n0022\n");
}

TEST_F(AgentTest, RefusalsAreHeldUntilForgotten) {
  auto unknown = StartMessage("true");
  unknown.mutable_start()->set_account("sekisho-nobody");
  server_.Send(unknown);
  auto root = StartMessage("true", "job", 1);
  root.mutable_start()->set_account("root");
  server_.Send(root);
  auto file = StartMessage("true", "job", 2);
  (*file.mutable_start()->mutable_file())["../../escape"] = "x";
  server_.Send(file);
  auto absent = StartMessage("true", "job", 3);
  absent.mutable_start()->set_argument(0, "/no/such/program");
  server_.Send(absent);
  for (int task = 0; task < 4; ++task) {
    ASSERT_TRUE(AwaitEnd(task));
  }

  EXPECT_EQ(Task(0).exited->gram_code(), 167);
  EXPECT_EQ(Task(0).exited->reason(), "this node has no account \"sekisho-nobody\"");
  EXPECT_EQ(Task(1).exited->gram_code(), 167);
  EXPECT_EQ(Task(1).exited->reason(), "tasks never run as root: account root");
  EXPECT_EQ(Task(2).exited->gram_code(), 46);
  EXPECT_EQ(Task(3).exited->gram_code(), 5);
  EXPECT_EQ(Task(3).started, 0);
  EXPECT_EQ(ListTaskDirectories(State()).size(), 4U);
}

TEST_F(AgentTest, ImpossibleNamesTouchNothing) {
  Start("true", "../escape");
  Start("true", "job", -1);
  Start("true");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(ListTaskDirectories(State()).size(), 1U);
  EXPECT_FALSE(fs::exists(root_ + "/escape"));
}

TEST_F(AgentTest, MuchOutputComesWholeThroughASmallWindow) {
  Start("head -c 20000000 /dev/zero | tr '\\0' x");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], std::string(20000000, 'x'));
}

TEST_F(AgentTest, WithoutAcknowledgementNoMoreThanTheWindowIsSent) {
  server_.is_acknowledging = false;
  Start("head -c 5000000 /dev/zero");
  ASSERT_TRUE(Await([&] { return Task().exited.has_value(); }));

  ASSERT_TRUE(Await([&] { return Task().output[0].size() == kUnacknowledgedMost; }));
  EXPECT_EQ(Task().exited->stdout_size(), 5000000U);
}

TEST_F(AgentTest, OutputResumesAtTheRightByteAfterALostConnection) {
  server_.drop_after = 3000000;
  Start("head -c 9000000 /dev/urandom > random; cat random");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], TextOf("random"));
  EXPECT_THAT(server_.hello->held_size(), 1);
}

TEST_F(AgentTest, TaskOutlivesTheAgentAndItsEndIsNotLost) {
  Start(std::string(kUntilGo) + "echo after; exit 9");
  ASSERT_TRUE(Await([&] { return Task().output[0] == "ready\n"; }));

  StopAgent();
  Touch("go");
  for (int i = 0; i < 1000 && !fs::exists(State() + "/job/0/exit"); ++i) {
    usleep(10000);
  }
  StartAgent();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->exit().code(), 9);
  EXPECT_EQ(Task().output[0], "ready\nafter\n");
}

TEST_F(AgentTest, RunningTaskIsAdoptedAndStillObeys) {
  Start(std::string("trap 'echo bye; exit 3' TERM; ") + kUntilGo);
  ASSERT_TRUE(Await([&] { return Task().output[0] == "ready\n"; }));

  StopAgent();
  StartAgent();
  EXPECT_EQ(agent_->tasks->running(), 1U);
  Kill("job", SIGTERM, 10000);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->exit().code(), 3);
  EXPECT_EQ(Task().output[0], "ready\nbye\n");
}

TEST_F(AgentTest, KillEndsAllTasksOfTheJobAndNoOther) {
  const std::string stubborn =
      "trap '' TERM; (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &);"
      "echo ready; while :; do sleep 1; done";
  Start(stubborn, "job", 0);
  Start(stubborn, "job", 1);
  Start(std::string(kUntilGo) + "exit 1", "other");
  ASSERT_TRUE(Await([&] {
    return Task(0).output[0] == "ready\n" && Task(1).output[0] == "ready\n" &&
           Task(0, "other").output[0] == "ready\n";
  }));

  Kill("job", SIGTERM, 50);
  ASSERT_TRUE(AwaitEnd(0));
  ASSERT_TRUE(AwaitEnd(1));

  EXPECT_EQ(Task(0).exited->exit().signal(), SIGKILL);
  EXPECT_EQ(Task(1).exited->exit().signal(), SIGKILL);
  EXPECT_EQ(agent_->tasks->running(), 1U);
  Touch("go");
  ASSERT_TRUE(AwaitEnd(0, "other"));
  EXPECT_EQ(Task(0, "other").exited->exit().code(), 1);
}

TEST_F(AgentTest, KillRightAfterStartIsNotLost) {
  Start("sleep 1000");
  Kill("job", SIGKILL, 0);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->exit().signal(), SIGKILL);
}

TEST_F(AgentTest, StopAndResume) {
  Start("echo ready; while :; do echo x; sleep 0.01; done");
  ASSERT_TRUE(Await([&] { return Task().output[0].size() > 10; }));
  proto::ServerMessage stop;
  stop.mutable_stop()->set_job_id("job");
  server_.Send(stop);
  size_t size = 0;
  ASSERT_TRUE(Await([&] {  // quiet for 200 ms
    size = Task().output[0].size();
    const auto until = std::chrono::steady_clock::now() + 200ms;
    loop_.restart();
    loop_.run_until(until);
    return Task().output[0].size() == size;
  }));

  stop.mutable_stop()->set_resume(true);
  server_.Send(stop);

  EXPECT_TRUE(Await([&] { return Task().output[0].size() > size; }));
}

TEST_F(AgentTest, InputComesOnceWhateverIsRepeated) {
  auto start = StartMessage("cat; echo end");
  start.mutable_start()->set_has_input(true);
  server_.Send(start);
  const auto input = [&](uint64_t offset, const std::string& data, bool end) {
    proto::ServerMessage message;
    *message.mutable_input()->mutable_task() = start.start().task();
    message.mutable_input()->set_offset(offset);
    message.mutable_input()->set_data(data);
    message.mutable_input()->set_end(end);
    server_.Send(message);
  };

  input(0, "hello ", false);
  input(3, "lo wo", false);
  input(100, "from the future", false);
  ASSERT_TRUE(Await([&] { return Task().output[0] == "hello wo"; }));
  StopAgent();
  StartAgent();
  ASSERT_TRUE(Await([&] { return Task().input_taken == 8; }));
  input(6, "world\n", true);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "hello world\nend\n");
}

TEST_F(AgentTest, TasksOfAnEarlierBootHaveEnded) {
  Start("echo ready; exec sleep 1000");
  ASSERT_TRUE(Await([&] { return Task().output[0] == "ready\n"; }));
  StopAgent();
  const auto running = TaskDirectory(State() + "/job/0").ReadRunning();
  kill(running->supervisor, SIGKILL);  // as a reboot would
  while (kill(running->supervisor, 0) == 0) {
    usleep(1000);
  }
  if (!place_.parent.empty()) {
    task::Group group(place_.grouping, place_.parent + "/job.0", 0);
    while (!group.Remove()) {
      group.KillOnce(false);
      usleep(1000);
    }
  }

  boot_id_ = "boot-2";
  StartAgent();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->gram_code(), 17);
  EXPECT_EQ(Task().exited->reason(), "the node was restarted while the task ran");
  EXPECT_EQ(Task().output[0], "ready\n");
}

TEST_F(AgentTest, KilledSupervisorIsNoticedAndTheTaskEnded) {
  Start(
      "(setsid sh -c 'echo $$ > pid; exec sleep 1000' &); while [ ! -s pid ]; do sleep 0.01; done; "
      "echo ready; exec sleep 1000");
  ASSERT_TRUE(Await([&] { return Task().output[0] == "ready\n"; }));

  kill(TaskDirectory(State() + "/job/0").Supervisor(), SIGKILL);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->reason(), "the task's supervisor was killed");
  if (place_.grouping != task::Grouping::kNone) {
    EXPECT_NE(kill(std::atoi(TextOf("pid").c_str()), 0), 0);
  }
}

TEST_F(AgentTest, ForgetLeavesNothing) {
  Start("true");
  ASSERT_TRUE(AwaitEnd());
  proto::ServerMessage forget;
  forget.mutable_forget()->set_job_id("job");
  server_.Send(forget);

  EXPECT_TRUE(Await([&] { return !fs::exists(State() + "/job"); }));
}

TEST_F(AgentTest, OutputBeyondTheLimitEndsTheTask) {
  StopAgent();
  output_limit_ = 1 << 20;
  StartAgent();
  auto start = StartMessage("yes");
  start.mutable_start()->set_grace_ms(50);
  server_.Send(start);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->gram_code(), 17);
  EXPECT_EQ(Task().exited->reason(), "its output passed the site's limit");
}

TEST_F(AgentTest, LoadIsReportedWhenWhatRunsChanges) {
  Start("true");
  ASSERT_TRUE(AwaitEnd());
  server_.load.reset();

  Start("true", "other");
  ASSERT_TRUE(AwaitEnd(0, "other"));

  EXPECT_TRUE(Await([&] { return server_.load && server_.load->free_memory_mb() > 0; }));
}

TEST_F(AgentTest, CheckOnlyRunsNothing) {
  auto start = StartMessage("touch ran");
  start.mutable_start()->set_check_only(true);
  server_.Send(start);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->gram_code(), 0);
  EXPECT_FALSE(Exists("ran"));
}

}  // namespace
}  // namespace sekisho::agent
