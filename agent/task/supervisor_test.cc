// SPDX-License-Identifier: Apache-2.0
// How tasks are watched, stopped and ended, whatever they do.
#include <sys/mount.h>

#include "agent/task/supervisor_fixture.h"

namespace sekisho::agent::task {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

// For the task's directory alone.
bool MountSmallDisk(const std::string& path) {
  return mount("tmpfs", path.c_str(), "tmpfs", 0, "size=256k,mode=0711") == 0;
}

void Fill(const std::string& path) {
  std::ofstream filler(path + "/filler");
  while (filler << std::string(4096, 'x') << std::flush) {
  }
}

TEST_P(SupervisorTest, KillsWhatTheTaskLeavesBehind) {
  Shell("(setsid sh -c 'echo $$ > pid; exec sleep 1000' &) ; while [ ! -s pid ]; do :; done");
  EXPECT_EQ(RunToEnd().code, 0);

  const pid_t left = std::atoi(TextOf(home_ + "/pid").c_str());
  ASSERT_GT(left, 0);
  EXPECT_FALSE(IsAlive(left));
}

TEST_P(SupervisorTest, KillReachesDoubleForksThatIgnoreSigterm) {
  Shell(
      "trap '' TERM; (setsid setsid sh -c 'trap \"\" TERM; echo $$ > pid; while :; do sleep 100; "
      "done' &) ;"
      "while [ ! -s pid ]; do :; done; echo ready; while :; do sleep 100; done");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));

  Tell({Command::kKill, SIGTERM, 50});

  EXPECT_EQ(AwaitEnd().signal, SIGKILL);
  EXPECT_FALSE(IsAlive(std::atoi(TextOf(home_ + "/pid").c_str())));
}

TEST_P(SupervisorTest, ItsEndIsRecordedOnADiskThatHasBecomeFull) {
  if (!MountSmallDisk(dir_)) {
    GTEST_SKIP() << "cannot mount a small disk";
  }
  Shell("echo ready; while [ ! -e go ]; do sleep 0.01; done; exit 5");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));
  ASSERT_TRUE(Await([&] { return Now().main > 0; }));

  Fill(dir_);
  std::ofstream(home_ + "/go") << "";

  EXPECT_EQ(AwaitEnd().code, 5);
}

TEST_P(SupervisorTest, ItsStartIsRecordedOnADiskThatHasBecomeFull) {
  if (!MountSmallDisk(dir_)) {
    GTEST_SKIP() << "cannot mount a small disk";
  }
  spec_.await_release = true;
  Shell("exit 5");
  Launch();
  ASSERT_TRUE(Await([&] { return Has(kReadyFile); }));

  Fill(dir_);
  Tell({Command::kRelease});

  EXPECT_EQ(AwaitEnd().code, 5);
  EXPECT_GT(Now().main, 0);
}

TEST_P(SupervisorTest, ThatItIsReadyIsSaidAsSoonAsItCanBe) {
  mkdir((dir_ + "/ready").c_str(), 0700);  // so that the file cannot have its name
  const int failed = inotify_init1(IN_CLOEXEC);
  ASSERT_GE(inotify_add_watch(failed, dir_.c_str(), IN_DELETE), 0);
  spec_.await_release = true;
  Shell("exit 5");
  Launch();
  pollfd is_failed{failed, POLLIN, 0};
  ASSERT_EQ(poll(&is_failed, 1, 20000), 1);
  close(failed);

  rmdir((dir_ + "/ready").c_str());

  ASSERT_TRUE(Await([&] { return std::filesystem::is_regular_file(dir_ + "/ready"); }));
  Tell({Command::kRelease});
  EXPECT_EQ(AwaitEnd().code, 5);
}

TEST_P(SupervisorTest, KillGivesTimeToEndWell) {
  Shell("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));

  Tell({Command::kKill, SIGTERM, 20000});

  EXPECT_EQ(AwaitEnd().code, 3);
  EXPECT_THAT(Spooled(kStdoutFile), HasSubstr("bye"));
}

TEST_P(SupervisorTest, WallTimeLimitEndsItAndSaysSo) {
  spec_.wall_limit_ms = 200;
  spec_.grace_ms = 50;
  Shell("trap '' TERM; while :; do sleep 0.01; done");

  const Ended ended = RunToEnd();

  EXPECT_EQ(ended.signal, SIGKILL);
  EXPECT_EQ(ended.gram_code, kExecutionFailed);
  EXPECT_EQ(ended.reason, "wall-time limit of 0.200 s reached");
}

TEST_P(SupervisorTest, CpuTimeLimitEndsItAndSaysSo) {
  spec_.cpu_limit_s = 1;
  Shell("while :; do :; done");

  const Ended ended = RunToEnd();

  EXPECT_EQ(ended.signal, SIGXCPU);
  EXPECT_EQ(ended.reason, "CPU-time limit of 1 s reached");
  EXPECT_THAT(ended.cpu_ms, AllOf(Ge(500), Le(3000)));
}

TEST_P(SupervisorTest, MemoryLimitIsEnforced) {
  spec_.memory_limit_mb = 64;
  spec_.argument = {"/usr/bin/perl", "-e", "$x = 'x' x (200 << 20); print length $x"};

  EXPECT_NE(RunToEnd().code, 0);
  EXPECT_EQ(Spooled(kStdoutFile), "");
}

TEST_P(SupervisorTest, StoppedTaskDoesNothingUntilResumed) {
  Shell("echo ready; read x; echo go");
  spec_.has_input = true;
  spec_.wall_limit_ms = 10000;
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));
  const auto feed = [&] {
    std::ofstream(dir_ + "/input", std::ios::app) << "line\n";
    Tell({Command::kInputEnd});
  };

  Tell({Command::kStop});
  feed();
  EXPECT_TRUE(Await([&] { return Spooled(kInputTaken).find("5\n") != std::string::npos; }));
  const bool was_silent = Spooled(kStdoutFile) == "ready\n";
  Tell({Command::kResume});

  EXPECT_EQ(AwaitEnd().code, 0);
  EXPECT_TRUE(was_silent);
  EXPECT_EQ(Spooled(kStdoutFile), "ready\ngo\n");
}

TEST_P(SupervisorTest, StoppedTaskCanBeKilled) {
  Shell("trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));
  Tell({Command::kStop});

  Tell({Command::kKill, SIGTERM, 20000});

  EXPECT_EQ(AwaitEnd().code, 4);
}

TEST_P(SupervisorTest, InputArrivesWholeAndEnds) {
  spec_.has_input = true;
  Shell("md5sum; echo done");
  const std::string data(3 << 20, 'q');
  std::ofstream(dir_ + "/input") << data.substr(0, 1 << 20);
  Launch();
  ASSERT_TRUE(Await([&] { return Has(kPidFile) && Now().main > 0; }));
  std::ofstream(dir_ + "/input", std::ios::app) << data.substr(1 << 20);
  Tell({Command::kInputEnd});

  EXPECT_EQ(AwaitEnd().code, 0);
  EXPECT_EQ(Spooled(kInputTaken), "00000000000003145728\n");
  EXPECT_THAT(Spooled(kStdoutFile), HasSubstr("3d7a67ddfed3939e2f2def60695de49d  -\ndone"));
}

TEST_P(SupervisorTest, InputThatNobodyReadsDoesNotHurt) {
  spec_.has_input = true;
  Shell("exec <&-; echo closed; while [ ! -e go ]; do sleep 0.01; done");
  Launch();
  ASSERT_TRUE(AwaitOutput("closed"));

  std::ofstream(dir_ + "/input", std::ios::app) << "nobody reads this";
  Tell({Command::kInput});
  EXPECT_TRUE(
      Await([&] { return Spooled(kInputTaken).find("9223372036854775807") != std::string::npos; }));
  std::ofstream(home_ + "/go") << "";

  EXPECT_EQ(AwaitEnd().code, 0);
}

TEST_P(SupervisorTest, ForkStormIsBoundedAndKilled) {
  spec_.process_limit = 60;
  // The shell that storms ends when it cannot fork; the task's own process stays.
  Shell("(f() { f | f & }; while :; do f; sleep 0.01; done) 2>/dev/null & echo ready; exec sleep 600");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));

  Tell({Command::kKill, SIGKILL, 0});

  EXPECT_EQ(AwaitEnd().signal, SIGKILL);
}

TEST_P(SupervisorTest, NeverRunsATaskTwice) {
  Shell("echo once >> ran; echo ready; while [ ! -e go ]; do sleep 0.01; done");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));

  Spawn();
  std::ofstream(home_ + "/go") << "";
  AwaitEnd();
  Spawn();

  EXPECT_EQ(TextOf(home_ + "/ran"), "once\n");
}

TEST_P(SupervisorTest, SupervisorsDeathEndsTheTask) {
  Shell("echo ready; exec sleep 1000");
  Launch();
  ASSERT_TRUE(AwaitOutput("ready"));
  ASSERT_TRUE(Await([&] { return Now().main > 0; }));
  const Running running = Now();

  kill(running.supervisor, SIGKILL);

  for (int i = 0; i < 500 && IsAlive(running.main); ++i) {
    poll(nullptr, 0, 10);
  }
  EXPECT_FALSE(IsAlive(running.main));
  if (!spec_.cgroup.empty()) {
    EXPECT_TRUE(Group(spec_.grouping, spec_.cgroup, 0).Remove());
  }
}

INSTANTIATE_TEST_SUITE_P(Grouping, SupervisorTest,
                         ::testing::Values(Grouping::kNone, Grouping::kV1, Grouping::kV2),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace sekisho::agent::task
