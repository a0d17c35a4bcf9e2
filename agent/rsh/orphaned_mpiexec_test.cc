// SPDX-License-Identifier: Apache-2.0
#include "agent/rsh/orphaned_mpiexec.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

namespace sekisho::agent::rsh {
namespace {

// How a launcher of that name ends, which waits for ever after what it has launched has gone.  One that is not ended ends
// with 7 by itself, and takes SIGTERM for nothing if it `is_deaf`.
int EndOf(const char* name, bool is_deaf) {
  const pid_t launcher = fork();
  if (launcher == 0) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
    std::signal(SIGTERM, is_deaf ? SIG_IGN : SIG_DFL);
    if (fork() == 0) {
      WatchMpiexec(20);
      _exit(255);
    }
    usleep(300'000);
    _exit(7);
  }
  int status = 0;
  waitpid(launcher, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(WatchMpiexec, EndsOneThatWaitsForEver) { EXPECT_EQ(EndOf("mpiexec.mpich", false), -SIGTERM); }

TEST(WatchMpiexec, EndsByForceWhoDoesNotHear) { EXPECT_EQ(EndOf("mpiexec.hydra", true), -SIGKILL); }

TEST(WatchMpiexec, LetsAnybodyElseBe) {
  EXPECT_EQ(EndOf("orterun", false), 7);
  EXPECT_EQ(EndOf("sh", false), 7);
}

}  // namespace
}  // namespace sekisho::agent::rsh
