// SPDX-License-Identifier: Apache-2.0
#include "qserver/command.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

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

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// In the child of a process with many threads: system calls only.
[[noreturn]] void Become(const Command& command, char* const* words, char* const* environment,
                         const std::array<int, 3>& streams) {
  for (int number = 0; number < 3; ++number) {
    dup2(streams[number], number);
  }
  close_range(3, ~0U, 0);
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (command.as) {
    const RunAs& as = *command.as;
    if (as.uid == 0 || setgroups(as.groups.size(), as.groups.data()) != 0 ||
        setresgid(as.gid, as.gid, as.gid) != 0 || setresuid(as.uid, as.uid, as.uid) != 0) {
      _exit(126);
    }
  }
  if (chdir("/") == 0) {
    execve(words[0], words, environment);
  }
  _exit(127);
}

}  // namespace

absl::StatusOr<RunAs> FindRunAs(const std::string& account) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16 * 1024);
  const int error = getpwnam_r(account.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) {
    return error == 0 ? absl::NotFoundError(fmt::format("there is no account {}", account))
                      : absl::UnavailableError(fmt::format("cannot look up account {}: {}", account,
                                                           std::strerror(error)));
  }
  RunAs as{entry.pw_uid, entry.pw_gid, std::vector<gid_t>(1024)};
  int count = int(as.groups.size());
  getgrouplist(entry.pw_name, entry.pw_gid, as.groups.data(), &count);
  as.groups.resize(std::min(size_t(count), as.groups.size()));
  return as;
}

awaitable<absl::StatusOr<CommandEnd>> RunCommand(Command command) {
  const Memory input;
  const Memory output;
  const Memory complaint;
  const auto words = Pointers(command.words);
  const auto environment = Pointers(command.environment);
  if (complaint.fd() < 0 || !input.Fill(command.input)) {
    co_return absl::InternalError(fmt::format("cannot run {}: {}", words[0], std::strerror(errno)));
  }
  const pid_t pid = fork();
  if (pid == 0) {
    Become(command, words.data(), environment.data(), {input.fd(), output.fd(), complaint.fd()});
  }
  const int pid_fd = pid < 0 ? -1 : int(syscall(SYS_pidfd_open, pid, 0));
  if (pid_fd < 0) {
    co_return absl::InternalError(fmt::format("cannot run {}: {}", words[0], std::strerror(errno)));
  }

  const auto executor = co_await asio::this_coro::executor;
  asio::posix::stream_descriptor process(executor, pid_fd);
  asio::steady_timer limit(executor, command.limit);
  limit.async_wait([pid](const std::error_code& error) {
    if (!error) {
      kill(pid, SIGKILL);  // still ours: nobody has waited for it
    }
  });
  co_await process.async_wait(asio::posix::stream_descriptor::wait_read, kAsTuple);
  limit.cancel();
  siginfo_t info{};
  if (waitid(P_PID, id_t(pid), &info, WEXITED) != 0) {
    co_return absl::InternalError(fmt::format("cannot wait for {}: {}", words[0], std::strerror(errno)));
  }
  CommandEnd end;
  end.code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  end.output = output.Text();
  end.complaint = complaint.Text();
  co_return end;
}

}  // namespace sekisho::qserver
