// SPDX-License-Identifier: Apache-2.0
#include "agent/task/group.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

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

}  // namespace
}  // namespace sekisho::agent::task
