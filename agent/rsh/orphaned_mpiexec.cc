// SPDX-License-Identifier: Apache-2.0
#include "agent/rsh/orphaned_mpiexec.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

namespace sekisho::agent::rsh {
namespace {

bool HasEnded(int pidfd, int within_ms) {
  pollfd watched{.fd = pidfd, .events = POLLIN, .revents = 0};
  return poll(&watched, 1, within_ms) != 0;  // or it cannot be known
}

}  // namespace

bool WaitsForItsProxies(std::string_view name) { return name.starts_with("mpiexec"); }

void WatchMpiexec(int patience_ms) {
  const pid_t parent = getppid();
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(parent) + "/comm"), name);
  if (!WaitsForItsProxies(name)) {
    return;
  }
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, parent, 0));
  if (pidfd < 0 || getppid() != parent || fork() != 0) {
    return;
  }
  // Our standard streams are what it reads until all have closed them.
  dup2(pidfd, 0);
  syscall(SYS_close_range, 1U, ~0U, 0);
  for (const int signal : {SIGTERM, SIGKILL}) {
    if (HasEnded(0, patience_ms)) {
      break;
    }
    syscall(SYS_pidfd_send_signal, 0, signal, nullptr, 0);
  }
  _exit(0);
}

}  // namespace sekisho::agent::rsh
