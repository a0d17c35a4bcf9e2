// SPDX-License-Identifier: Apache-2.0
#include "agent/keeper.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sekisho::agent {
namespace {

using std::chrono::milliseconds;

constexpr Restarts::Limits kQuick{milliseconds(1), milliseconds(2), milliseconds(600'000), 4};

TEST(Restarts, PausesGrowAndAreBounded) {
  Restarts restarts({milliseconds(100), milliseconds(300), milliseconds(60'000), 10});

  EXPECT_EQ(restarts.OnDeath(milliseconds(0)), milliseconds(100));
  EXPECT_EQ(restarts.OnDeath(milliseconds(0)), milliseconds(200));
  EXPECT_EQ(restarts.OnDeath(milliseconds(0)), milliseconds(300));
  EXPECT_EQ(restarts.OnDeath(milliseconds(59'999)), milliseconds(300));
}

TEST(Restarts, GiveUpAfterShortLivesInARow) {
  Restarts restarts(kQuick);

  EXPECT_TRUE(restarts.OnDeath(milliseconds(0)));
  EXPECT_TRUE(restarts.OnDeath(milliseconds(0)));
  EXPECT_TRUE(restarts.OnDeath(milliseconds(0)));
  EXPECT_FALSE(restarts.OnDeath(milliseconds(0)));
}

TEST(Restarts, ALongLifeMakesAllWellAgain) {
  Restarts restarts({milliseconds(100), milliseconds(300), milliseconds(60'000), 2});

  EXPECT_EQ(restarts.OnDeath(milliseconds(0)), milliseconds(100));
  EXPECT_EQ(restarts.OnDeath(milliseconds(60'000)), milliseconds(100));
  EXPECT_FALSE(restarts.OnDeath(milliseconds(0)));
}

// A keeper in a process of its own, and a script that it keeps, whose folder is $D.
class KeepTest : public ::testing::Test {
 protected:
  KeepTest() {
    char path[] = "/tmp/sekisho-keeper-XXXXXX";
    folder_ = mkdtemp(path);
    setenv("D", folder_.c_str(), 1);
  }
  ~KeepTest() override { std::filesystem::remove_all(folder_); }

  pid_t Start(const std::string& script) {
    const pid_t pid = fork();
    if (pid == 0) {
      _exit(Keep({"/bin/sh", "-c", script}, kQuick));
    }
    return pid;
  }
  static int EndOf(pid_t pid) {
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  std::string Text(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static bool Until(const std::function<bool()>& condition) {
    for (int i = 0; i < 1000; ++i) {
      if (condition()) {
        return true;
      }
      poll(nullptr, 0, 10);
    }
    return false;
  }
  pid_t PidIn(const std::string& name) {
    EXPECT_TRUE(Until([&] { return Text(name).ends_with('\n'); })) << name;
    return std::atoi(Text(name).c_str());
  }
  static bool IsAlive(pid_t pid) { return kill(pid, 0) == 0; }

  std::string folder_;
};

TEST_F(KeepTest, AProgramThatEndsByItselfIsNotStartedAgain) {
  EXPECT_EQ(EndOf(Start("echo x >> $D/lives; exit 5")), 5);
  EXPECT_EQ(Text("lives"), "x\n");
}

TEST_F(KeepTest, OneThatIsKilledIsStartedAgainUntilItEndsByItself) {
  EXPECT_EQ(EndOf(Start("echo x >> $D/lives; [ $(wc -l < $D/lives) = 3 ] || kill -9 $$")), 0);
  EXPECT_EQ(Text("lives"), "x\nx\nx\n");
}

TEST_F(KeepTest, AnErrorIsADeathTooOnceThereWasOne) {
  EXPECT_EQ(EndOf(Start("echo x >> $D/lives; case $(wc -l < $D/lives) in 1) kill -9 $$;; 2) exit 3;; esac")), 0);
  EXPECT_EQ(Text("lives"), "x\nx\nx\n");
}

TEST_F(KeepTest, OneThatDiesAtEachStartIsGivenUp) {
  EXPECT_EQ(EndOf(Start("echo x >> $D/lives; kill -9 $$")), 1);
  EXPECT_EQ(Text("lives"), "x\nx\nx\nx\n");
}

TEST_F(KeepTest, WhatItStartedOutlivesItButNotTheKeeper) {
  const pid_t keeper = Start(
      "if [ -e $D/pid ]; then until [ -e $D/go ]; do sleep 0.01; done; exit 0; fi;"
      "setsid sh -c 'echo $$ > $D/pid; exec sleep 1000' & until [ -s $D/pid ]; do sleep 0.01; done; kill -9 $$");
  const pid_t left = PidIn("pid");
  std::ofstream(folder_ + "/go");

  EXPECT_EQ(EndOf(keeper), 0);
  EXPECT_FALSE(IsAlive(left));
}

TEST_F(KeepTest, WhenToldToEndItLetsTheProgramEndAndStartsNoOther) {
  for (const auto& [end, code] : {std::pair("exit 4", 4), {"kill -9 $$", 128 + SIGKILL}}) {
    std::filesystem::remove(folder_ + "/ready");
    const pid_t keeper = Start("trap 'echo told >> $D/told; " + std::string(end) +
                               "' TERM; echo $$ > $D/ready; while :; do sleep 0.01; done");
    PidIn("ready");

    kill(keeper, SIGTERM);
    EXPECT_EQ(EndOf(keeper), code);
  }
  EXPECT_EQ(Text("told"), "told\ntold\n");
}

TEST_F(KeepTest, SignalsThatAUserSendsToAllOfHisJobAreNotForIt) {
  const pid_t keeper = Start("echo $$ > $D/ready; until [ -e $D/go ]; do sleep 0.01; done");
  PidIn("ready");

  kill(keeper, SIGUSR1);
  kill(keeper, SIGHUP);
  std::ofstream(folder_ + "/go");
  EXPECT_EQ(EndOf(keeper), 0);
}

TEST_F(KeepTest, AProgramWhoseKeeperIsKilledIsToldToEnd) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  const pid_t keeper = Start("trap 'echo told > $D/told; exit' TERM; echo $$ > $D/ready; while :; do sleep 0.01; done");
  const pid_t program = PidIn("ready");

  kill(keeper, SIGKILL);
  EXPECT_EQ(EndOf(keeper), -SIGKILL);
  EXPECT_TRUE(Until([&] { return Text("told") == "told\n"; }));
  waitpid(program, nullptr, 0);
}

}  // namespace
}  // namespace sekisho::agent
