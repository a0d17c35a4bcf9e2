// SPDX-License-Identifier: Apache-2.0
// sekisho-rsh from a task, through agent and queue server, to a helper; and a real mpiexec on top.
#include "agent/agent_fixture.h"

namespace sekisho::agent {
namespace {

using ::testing::HasSubstr;

class LaunchTest : public AgentTest {
 protected:
  static std::string Rsh() { return std::string(std::getenv("SEKISHO_BIN")) + "/sekisho-rsh"; }

  void StartLauncher(const std::string& script, const std::string& token = "secret") {
    auto start = StartMessage(script);
    start.mutable_start()->set_launch_token(token);
    (*start.mutable_start()->mutable_environment())["SEKISHO_JOB_ID"] = "job";
    (*start.mutable_start()->mutable_environment())["MINE"] = "kept";
    (*start.mutable_start()->mutable_environment())["RSH"] = Rsh();
    server_.Send(start);
  }
};

TEST_F(LaunchTest, HelperRunsAsUnderSsh) {
  StartLauncher(
      "echo input | $RSH -x n2 'read x; echo got $x $MINE; echo err >&2;' exit 7; echo code $?");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "got input kept\ncode 7\n");
  EXPECT_EQ(Task().output[1], "err\n");
  ASSERT_EQ(server_.launches.size(), 1U);
  EXPECT_EQ(server_.launches[0].node(), "n2");
  EXPECT_EQ(server_.launches[0].job_id(), "job");
}

TEST_F(LaunchTest, HelperDoesNotInheritTheTasksOwnVariables) {
  StartLauncher("$RSH -n n2 env");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_THAT(Task().output[0], HasSubstr("MINE=kept\n"));
  EXPECT_EQ(Task().output[0].find("SEKISHO_LAUNCH_TOKEN"), std::string::npos);
}

TEST_F(LaunchTest, FailureToStartIsTold) {
  StartLauncher("cd /; $RSH -n n2 /no/such/program; echo code $?");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "code 127\n");
}

TEST_F(LaunchTest, WrongTokenLaunchesNothing) {
  StartLauncher("SEKISHO_LAUNCH_TOKEN=guess $RSH -n n2 true; echo code $?");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "code 255\n");
  EXPECT_THAT(Task().output[1], HasSubstr("no task of job \"job\" with this token"));
  EXPECT_TRUE(server_.launches.empty());
}

TEST_F(LaunchTest, HelperDiesWithTheJob) {
  StartLauncher(
      "$RSH -n n2 'trap \"\" TERM; echo $$ > pid; chmod 666 pid; echo up; exec sleep 1000'");
  ASSERT_TRUE(Await([&] { return Task().output[0] == "up\n"; }));
  const auto helper = TaskDirectory(State() + "/job/1000001").ReadRunning();
  ASSERT_TRUE(helper);

  Kill("job", SIGTERM, 50);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_TRUE(Await([&] { return agent_->tasks->running() == 0; }));
  EXPECT_NE(kill(helper->main, 0), 0);
}

TEST_F(LaunchTest, SurvivesTheAgentOfTheLauncherAndOfTheHelper) {
  StartLauncher(
      "(echo one; until [ -e go ]; do sleep 0.01; done; echo two) | "
      "$RSH n2 'read a; echo got $a; read b; echo got $b; echo err >&2; exit 7'; echo code $?");
  ASSERT_TRUE(Await([&] { return Task().output[0] == "got one\n"; }));

  StopAgent();
  Touch("go");
  StartAgent();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "got one\ngot two\ncode 7\n");
  EXPECT_EQ(Task().output[1], "err\n");
  ASSERT_GE(server_.launches.size(), 2U);
  EXPECT_TRUE(server_.launches.back().again());
  EXPECT_EQ(server_.launches.back().taken().stdout_offset(), 8U);
}

TEST_F(LaunchTest, SurvivesTheConnectionToTheQueueServer) {
  StartLauncher(
      "(echo one; until [ -e go ]; do sleep 0.01; done; echo two) | "
      "$RSH n2 'read a; echo got $a; read b; echo got $b; exit 7'; echo code $?");
  ASSERT_TRUE(Await([&] { return Task().output[0] == "got one\n"; }));

  server_.DropConnection();
  Touch("go");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "got one\ngot two\ncode 7\n");
  EXPECT_TRUE(server_.launches.back().again());
}

TEST_F(LaunchTest, AQueueServerOfBeforeIsNotAskedAgain) {
  server_.is_relaunching = false;
  StopAgent();
  StartAgent();
  StartLauncher("(until [ -e go ]; do sleep 0.01; done) | $RSH n2 'echo one; read x'; echo code $?");
  ASSERT_TRUE(Await([&] { return Task().output[0] == "one\n"; }));

  server_.DropConnection();
  Touch("go");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "one\ncode 255\n");
  EXPECT_THAT(Task().output[1], HasSubstr("the queue server is too old"));
  EXPECT_EQ(server_.launches.size(), 1U);
}

TEST_F(LaunchTest, InputFlowsWhileNobodyReadsTheOutput) {
  StartLauncher(
      "mkfifo out; exec 3<>out; (head -c 3000000 /dev/zero; touch written) | $RSH n2 cat >&3 & "
      "until [ -e written ]; do sleep 0.01; done; head -c 3000000 out | wc -c; exec 3>&-; wait $!; echo code $?");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "3000000\ncode 0\n");
}

TEST_F(LaunchTest, ACommandThatIsTooLongIsRefusedWithTheReason) {
  StartLauncher("a=$(head -c 100000 /dev/zero | tr '\\0' a); $RSH -n n2 $a $a $a $a $a $a $a $a $a $a $a; echo code $?");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "code 255\n");
  EXPECT_THAT(Task().output[1], HasSubstr("the command is longer than 1 MiB"));
}

TEST_F(LaunchTest, UnmodifiedMpiexecStartsItsProxiesThroughUs) {
  if (access("/usr/bin/mpiexec.hydra", X_OK) != 0) {
    GTEST_SKIP() << "no mpiexec.hydra";
  }
  StartLauncher(
      "mpiexec.hydra -launcher rsh -launcher-exec $RSH -hosts node-a,node-b -n 4 "
      "/bin/sh -c 'echo rank $PMI_RANK'");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->exit().code(), 0) << Task().output[1];
  EXPECT_EQ(server_.launches.size(), 2U);
  for (const char* rank : {"rank 0\n", "rank 1\n", "rank 2\n", "rank 3\n"}) {
    EXPECT_THAT(Task().output[0], HasSubstr(rank));
  }
}

}  // namespace
}  // namespace sekisho::agent
