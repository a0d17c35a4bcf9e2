// SPDX-License-Identifier: Apache-2.0
#include "client/topology/shell_child.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sekisho::client {
namespace {

constexpr std::chrono::seconds kPatience{2};  // with a child that was told to quit
constexpr int kLookAgainMs = 10;

}  // namespace

absl::Status ShellChild::Start(const std::string& command,
                               const std::vector<std::pair<std::string, std::string>>& variables) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::InternalError(fmt::format("socketpair: {}", std::strerror(errno)));
  }
  child_ = fork();
  if (child_ < 0) {
    close(ends[0]);
    close(ends[1]);
    return absl::InternalError(fmt::format("fork: {}", std::strerror(errno)));
  }
  if (child_ == 0) {
    setpgid(0, 0);
    dup2(ends[1], 0);
    dup2(ends[1], 1);
    for (const auto& [name, value] : variables) {
      setenv(name.c_str(), value.c_str(), 1);
    }
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  socket_ = ends[0];
  return absl::OkStatus();
}

void ShellChild::AskToEnd() {
  if (socket_ >= 0) {
    send(socket_, "Q\n", 2, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(socket_, SHUT_WR);
  }
}

void ShellChild::End(std::chrono::steady_clock::time_point deadline) {
  int status = 0;
  while (child_ > 0 && waitpid(child_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      kill(-child_, SIGKILL);
      waitpid(child_, &status, 0);
      break;
    }
    poll(nullptr, 0, kLookAgainMs);
  }
  child_ = -1;
}

ShellChild::~ShellChild() {
  AskToEnd();
  End(std::chrono::steady_clock::now() + kPatience);
  if (socket_ >= 0) {
    close(socket_);
  }
}

std::string ShellChild::HowItEnded() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (int status = 0; std::chrono::steady_clock::now() < deadline;) {
    if (waitpid(child_, &status, WNOHANG) == child_) {
      child_ = -1;
      return WIFEXITED(status) ? fmt::format("ended with exit code {}", WEXITSTATUS(status))
                               : fmt::format("was ended by signal {}", WTERMSIG(status));
    }
    poll(nullptr, 0, kLookAgainMs);
  }
  return "closed its output";
}

}  // namespace sekisho::client
