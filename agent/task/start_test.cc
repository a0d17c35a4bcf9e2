// SPDX-License-Identifier: Apache-2.0
#include "agent/task/start.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sekisho::agent::task {
namespace {

TEST(Start, FailureSurvivesThePipe) {
  EXPECT_FALSE(DecodeFailure("").has());
  EXPECT_EQ(DecodeFailure("5\nexecutable x: gone").gram_code, 5);
  EXPECT_EQ(DecodeFailure("5\nexecutable x: gone").reason, "executable x: gone");
  EXPECT_EQ(DecodeFailure("garbage").gram_code, kExecutionFailed);
}

TEST(Start, ProgramsWithoutASlashAreFoundOnThePath) {
  EXPECT_EQ(FindProgram("/no/such", "/bin"), "/no/such");
  EXPECT_EQ(FindProgram("sh", "/no/such::/bin"), "/bin/sh");
  EXPECT_EQ(FindProgram("sekisho-no-such-program", "/usr/bin:/bin"), "sekisho-no-such-program");
  EXPECT_EQ(FindProgram("sh", ""), "sh");
}

// What a task that cannot enter its directory says.
std::string SaidBelow(bool is_supervisor_gone) {
  constexpr uid_t kNobody = 65534;  // tasks never run as root
  Spec spec;
  spec.uid = getuid() != 0 ? getuid() : kNobody;
  spec.gid = getuid() != 0 ? getgid() : kNobody;
  spec.directory = "/no/dir";
  int said[2];
  EXPECT_EQ(pipe2(said, O_CLOEXEC), 0);
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    setsid();
    const pid_t us = getpid();
    const pid_t task = fork();
    if (task == 0) {
      while (is_supervisor_gone && getppid() == us) {
        sched_yield();
      }
      BecomeTask(spec, {}, said[1]);
    }
    if (!is_supervisor_gone) {
      waitpid(task, nullptr, 0);
    }
    _exit(0);
  }
  close(said[1]);
  std::string text;
  char buffer[256];
  for (ssize_t size = 0; (size = read(said[0], buffer, sizeof buffer)) > 0;) {  // until both have gone
    text.append(buffer, static_cast<size_t>(size));
  }
  close(said[0]);
  while (waitpid(-1, nullptr, 0) > 0) {  // the task, too, where orphans come to us
  }
  return text;
}

TEST(Start, NothingBeginsWhoseSupervisorHasGone) {
  EXPECT_THAT(SaidBelow(/*is_supervisor_gone=*/false), ::testing::HasSubstr("cannot enter directory /no/dir"));

  EXPECT_EQ(SaidBelow(/*is_supervisor_gone=*/true), "");
}

}  // namespace
}  // namespace sekisho::agent::task
