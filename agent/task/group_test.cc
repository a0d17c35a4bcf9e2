// SPDX-License-Identifier: Apache-2.0
#include "agent/task/group.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <ctime>

namespace sekisho::agent::task {
namespace {

TEST(Group, ReadsStatOfProcessesWithAnyName) {
  Stat stat;

  EXPECT_TRUE(ParseStat("12 (sh) S 1 12 11 0 -1", stat));
  EXPECT_EQ(stat.parent, 1);
  EXPECT_EQ(stat.session, 11);
  EXPECT_TRUE(ParseStat("12 (a) R 5 (b) Z 7 12 13 0", stat));
  EXPECT_EQ(stat.parent, 7);
  EXPECT_EQ(stat.state, 'Z');
  EXPECT_FALSE(ParseStat("12 (sh", stat));
  EXPECT_FALSE(ParseStat("", stat));
}

TEST(Group, DescendantsAreChildrenOfChildren) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {
      [[maybe_unused]] const ssize_t n = write(ends[1], "x", 1);
    }
    pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);

  const auto found = Descendants(getpid());

  EXPECT_EQ(found.size(), 2U);
  for (const pid_t pid : found) {
    kill(pid, SIGKILL);
  }
  waitpid(child, nullptr, 0);
}

// The number of a process that has gone may be another's when the signal is sent.
TEST(Group, SignalsOnlyWhoIsAMemberStill) {
  const pid_t member = fork();
  if (member == 0) {
    pause();
  }
  const pid_t another = fork();
  if (another == 0) {
    pause();
  }

  const auto reached = SendToMembers({member, another}, SIGKILL, [member] { return std::vector<pid_t>{member}; });

  EXPECT_EQ(reached, std::vector<pid_t>{member});
  EXPECT_EQ(waitpid(member, nullptr, 0), member);
  EXPECT_EQ(waitpid(another, nullptr, WNOHANG), 0);  // it lives
  kill(another, SIGKILL);
  waitpid(another, nullptr, 0);
}

// Of two processes, the second a program with this environment alone.
pid_t StartSession(const char* variable) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return -1;
  }
  const pid_t leader = fork();
  if (leader == 0) {
    setsid();
    if (fork() == 0) {
      const char* argv[] = {"sleep", "1000", nullptr};
      const char* environment[] = {variable, nullptr};
      execve("/bin/sleep", const_cast<char**>(argv), const_cast<char**>(environment));
      _exit(127);
    }
    close(ends[1]);
    pause();
  }
  close(ends[1]);
  char byte = 0;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);  // the program runs
  close(ends[0]);
  return leader;
}

// The number of a session that has gone may be another's.
TEST(Group, KillsASessionOnlyIfItBearsTheTasksMark) {
  const pid_t ours = StartSession("TOKEN=a");
  const pid_t strangers = StartSession("TOKEN=ab");

  KillSession(strangers, getuid(), "TOKEN=a");
  KillSession(ours, getuid(), "TOKEN=a");

  EXPECT_EQ(waitpid(ours, nullptr, 0), ours);  // also the one that is no such program
  EXPECT_EQ(waitpid(strangers, nullptr, WNOHANG), 0);
  KillSession(strangers, getuid() + 1, "TOKEN=ab");
  EXPECT_EQ(waitpid(strangers, nullptr, WNOHANG), 0);
  KillSession(strangers, getuid(), "");
  EXPECT_EQ(waitpid(strangers, nullptr, 0), strangers);
}

// Among others, so that a listing of all takes longer than it is any of its processes.
TEST(Group, KillsWhoIsAnotherProcessEachMoment) {
  std::vector<pid_t> others;
  for (int i = 0; i < 500; ++i) {
    others.push_back(fork());
    if (others.back() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      pause();
    }
  }
  const pid_t root = fork();
  if (root == 0) {
    int runs[2];
    char byte = 0;
    if (pipe(runs) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
      _exit(2);
    }
    if (fork() == 0) {
      const time_t until = time(nullptr) + 5;
      for (int births = 0; time(nullptr) < until; ++births) {
        if (fork() > 0) {
          _exit(0);
        }
        setsid();
        if (births == 100 && write(runs[1], "r", 1) != 1) {
          _exit(2);
        }
      }
      _exit(0);
    }
    if (read(runs[0], &byte, 1) != 1) {  // it runs
      _exit(2);
    }
    Group group(Grouping::kNone, "", getpid());
    for (int pass = 0; pass < 20; ++pass) {
      group.KillOnce(true);
      pid_t ended = 0;
      while ((ended = waitpid(-1, nullptr, WNOHANG)) > 0) {
      }
      if (ended < 0) {
        _exit(0);  // nobody is left
      }
    }
    _exit(1);
  }

  int status = 0;
  EXPECT_EQ(waitpid(root, &status, 0), root);

  EXPECT_EQ(status, 0);
  for (const pid_t other : others) {
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
  }
}

}  // namespace
}  // namespace sekisho::agent::task
