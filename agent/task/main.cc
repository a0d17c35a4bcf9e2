// SPDX-License-Identifier: Apache-2.0
// sekisho-task DIRECTORY: leaves its parent's session, then runs and watches the task that DIRECTORY/spec
// describes. Started by sekisho-agent only.  Standard library only and linked statically: one of
// these waits beside every running task.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "agent/task/record.h"
#include "agent/task/spec.h"
#include "agent/task/supervisor.h"

namespace {

using namespace sekisho::agent::task;

void Detach() {
  const int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd <= 2; ++fd) {
    dup2(null, fd);
  }
  close_range(3, ~0U, 0);
  for (int signal = 1; signal < NSIG; ++signal) {
    std::signal(signal, SIG_DFL);
  }
  sigset_t all;  // orders wait until we can read them
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  umask(077);
}

// When memory runs out the task shall go, not the one that tells of it.
void OutliveMemoryPressure() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    [[maybe_unused]] const ssize_t n = write(fd, "-1000", 5);
    close(fd);
  }
}

bool IsAbsent(int dir_fd, const char* name) {
  return faccessat(dir_fd, name, F_OK, 0) != 0 && errno == ENOENT;
}

// The lock says that the task has a supervisor; `pid` that it has had one.  So no task starts
// twice.  Without room for `pid` nothing has begun: the agent has another try.
bool Claim(int dir_fd) {
  const int spec = openat(dir_fd, kSpecFile, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct flock lock {};
  lock.l_type = F_WRLCK;
  if (spec < 0 || fcntl(spec, F_SETLK, &lock) != 0) {
    return false;
  }
  // The agent may have given us up meanwhile: what is said to have ended does not begin.
  return IsAbsent(dir_fd, kPidFile) && IsAbsent(dir_fd, kExitFile) &&
         WriteFile(dir_fd, kPidFile, EncodeRunning({.supervisor = getpid()}), Durability::kProcess);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    std::fputs("usage: sekisho-task DIRECTORY   (started by sekisho-agent)\n", stderr);
    return 64;
  }
  Detach();
  const int dir_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir_fd < 0) {
    return 1;
  }
  if (getsid(0) != getpid()) {  // else we were begun in a session of our own
    if (const pid_t pid = fork(); pid != 0) {
      _exit(pid < 0 ? 1 : 0);
    }
    setsid();
  }
  OutliveMemoryPressure();
  std::string text;  // read first: closing any descriptor of a file gives up all locks on it
  if (!ReadFile(dir_fd, kSpecFile, text) || !Claim(dir_fd)) {
    return 1;
  }
  if (const auto spec = DecodeSpec(text)) {
    Supervisor(*spec, dir_fd).Run();
    return 0;
  }
  const Ended ended{.gram_code = kNoResources, .reason = "the task's record cannot be read"};
  return WriteFile(dir_fd, kExitFile, EncodeEnded(ended), Durability::kMachine) ? 0 : 1;
}
