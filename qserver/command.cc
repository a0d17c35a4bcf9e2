// SPDX-License-Identifier: Apache-2.0
#include "qserver/command.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <asio/posix/stream_descriptor.hpp>
#include <fmt/format.h>

namespace sekisho::qserver {
namespace {

constexpr size_t kOutputMost = 64 << 20;

// A file without a name: neither side ever waits for the other, as with pipes.
class Memory {
 public:
  Memory() : fd_(memfd_create("sekisho", MFD_CLOEXEC)) {}
  ~Memory() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int fd() const { return fd_; }
  bool Fill(const std::string& text) const {
    return write(fd_, text.data(), text.size()) == ssize_t(text.size()) && lseek(fd_, 0, SEEK_SET) == 0;
  }
  std::string Text() const {
    const off_t size = lseek(fd_, 0, SEEK_END);
    std::string text(size > 0 ? std::min(size_t(size), kOutputMost) : 0, '\0');
    const ssize_t got = pread(fd_, text.data(), text.size(), 0);
    text.resize(got > 0 ? size_t(got) : 0);
    return text;
  }

 private:
  int fd_;
};

}  // namespace

awaitable<absl::StatusOr<CommandEnd>> RunCommand(Command command) {
  const Memory input;
  const Memory output;
  const Memory complaint;
  const std::string& program = command.words[0];
  if (complaint.fd() < 0 || !input.Fill(command.input)) {
    co_return absl::InternalError(fmt::format("cannot run {}: {}", program, std::strerror(errno)));
  }
  CO_ASSIGN_OR_RETURN(const pid_t pid, Spawn(command.words, command.environment,
                                             {input.fd(), output.fd(), complaint.fd()}, command.as));
  const int pid_fd = int(syscall(SYS_pidfd_open, pid, 0));
  if (pid_fd < 0) {
    const int reason = errno;
    kill(pid, SIGKILL);  // it would run unseen, and be run again
    waitpid(pid, nullptr, 0);
    errno = reason;
    co_return absl::InternalError(fmt::format("cannot run {}: {}", program, std::strerror(errno)));
  }

  const auto executor = co_await asio::this_coro::executor;
  asio::posix::stream_descriptor process(executor, pid_fd);
  asio::steady_timer limit(executor, command.limit);
  const auto is_over = std::make_shared<bool>(false);  // the timer may have fired already
  limit.async_wait([pid, is_over](const std::error_code& error) {
    if (!error && !*is_over) {
      // With all that it has started, unless it is too new to lead a session; still ours, as nobody has waited for it.
      if (kill(-pid, SIGKILL) != 0) {
        kill(pid, SIGKILL);
      }
    }
  });
  co_await process.async_wait(asio::posix::stream_descriptor::wait_read, kAsTuple);
  *is_over = true;
  limit.cancel();
  siginfo_t info{};
  if (waitid(P_PID, id_t(pid), &info, WEXITED) != 0) {
    co_return absl::InternalError(fmt::format("cannot wait for {}: {}", program, std::strerror(errno)));
  }
  CommandEnd end;
  end.code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  end.output = output.Text();
  end.complaint = complaint.Text();
  co_return end;
}

}  // namespace sekisho::qserver
