// SPDX-License-Identifier: Apache-2.0
// The agent against a queue server of the test, with real tasks.
#include "agent/agent_fixture.h"

namespace sekisho::agent {
namespace {

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

proto::ServerMessage FilesAnew(const std::string& content, int task = 0) {
  proto::ServerMessage message;
  proto::ServerMessage::Start& start = *message.mutable_start();
  start.mutable_task()->set_job_id("job");
  start.mutable_task()->set_task(task);
  (*start.mutable_file())["token"] = content;
  return message;
}

TEST_F(AgentTest, ATaskThatRunsIsGivenItsSmallFilesAnew) {
  auto start = StartMessage(std::string("cp $F here; ") + kUntilGo + "cat \"$F\"; stat -c '%a %U' \"$F\"; ls \"${F%/*}\"");
  (*start.mutable_start()->mutable_environment())["F"] = "@FILES@/token";
  (*start.mutable_start()->mutable_file())["token"] = "first\n";
  server_.Send(start);
  ASSERT_TRUE(Await([&] { return Task().output[0] == "ready\n"; }));

  server_.Send(FilesAnew("second\n"));
  ASSERT_TRUE(Await([&] {
    std::ifstream file(State() + "/job/0/files/token");
    std::string word;
    return file >> word && word == "second";
  }));
  Touch("go");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(TextOf("here"), "first\n");
  EXPECT_EQ(Task().output[0], "ready\nsecond\n600 " + AccountName() + "\ntoken\n");
  EXPECT_EQ(Task().started, 1);
}

TEST_F(AgentTest, FilesAnewForATaskThatIsNotHereStartNothing) {
  server_.Send(FilesAnew("x", 1));
  Start("true");
  ASSERT_TRUE(AwaitEnd());
  server_.Send(FilesAnew("x"));
  Start("true", "job", 2);
  ASSERT_TRUE(AwaitEnd(2));

  EXPECT_EQ(Task(1).exits, 0);
  EXPECT_EQ(ListTaskDirectories(State()).size(), 2U);
  EXPECT_FALSE(fs::exists(State() + "/job/0/files"));
}

TEST_F(AgentTest, AFileAnewWithAHiddenNameIsNotMade) {
  auto start = StartMessage(kUntilGo);
  (*start.mutable_start()->mutable_file())["token"] = "first\n";
  server_.Send(start);
  ASSERT_TRUE(Await([&] { return Task().output[0] == "ready\n"; }));
  auto hidden = FilesAnew("second\n");
  (*hidden.mutable_start()->mutable_file())[".hidden"] = "x";
  server_.Send(hidden);
  server_.Send(FilesAnew("third\n"));  // there once the one before was looked at
  ASSERT_TRUE(Await([&] {
    std::ifstream file(State() + "/job/0/files/token");
    std::string word;
    return file >> word && word == "third";
  }));

  EXPECT_FALSE(fs::exists(State() + "/job/0/files/.hidden"));
  Touch("go");
  ASSERT_TRUE(AwaitEnd());
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

// Printed, not asserted: the machine may be busy.
TEST_F(AgentTest, TellsHowLongAStartTakes) {
  std::vector<double> started;
  std::vector<double> exited;
  const auto begin = std::chrono::steady_clock::now();
  const auto ms = [](auto time) { return std::chrono::duration<double, std::milli>(time).count(); };
  for (int task = 0; task < 50; ++task) {
    auto start = StartMessage("", "job", task);
    start.mutable_start()->clear_argument();
    start.mutable_start()->add_argument("/bin/true");
    const auto sent = std::chrono::steady_clock::now();
    server_.Send(start);
    ASSERT_TRUE(Await([&] { return Task(task).started > 0; }));
    started.push_back(ms(std::chrono::steady_clock::now() - sent));
    ASSERT_TRUE(AwaitEnd(task));
    exited.push_back(ms(std::chrono::steady_clock::now() - sent));
  }
  std::sort(started.begin(), started.end());
  std::sort(exited.begin(), exited.end());
  std::printf(
      "Start to Started: median %.2f ms; to Exited (durable): median %.2f ms; %.0f tasks/s\n",
      started[25], exited[25], 50 / (ms(std::chrono::steady_clock::now() - begin) / 1000));
}

}  // namespace
}  // namespace sekisho::agent
