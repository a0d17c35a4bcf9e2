// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/launch.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gatekeeper/errors.h"

extern "C" char** environ;

namespace sekisho::gatekeeper {
namespace {

constexpr int kControlFd = 3;
constexpr int kCallsFd = 4;

std::string Errno() { return std::strerror(errno); }

std::vector<std::string> Environment(const Account& account) {
  std::vector<std::string> result = {
      "PATH=/usr/local/bin:/usr/bin:/bin",
      "HOME=" + account.home,
      "USER=" + account.name,
      "LOGNAME=" + account.name,
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    for (const char* prefix : {"SEKISHO_", "GRPC_", "ASAN_", "LSAN_", "TSAN_", "UBSAN_"}) {
      if (variable.starts_with(prefix)) {
        result.emplace_back(variable);
      }
    }
  }
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// The C library would have all threads do the same.  Here there are none any more, and for one that was just being
// made when we forked it would wait for ever.
bool Become(const Account& account) {
  return syscall(SYS_setgroups, account.groups.size(), account.groups.data()) == 0 &&
         syscall(SYS_setresgid, account.gid, account.gid, account.gid) == 0 &&
         syscall(SYS_setresuid, account.uid, account.uid, account.uid) == 0;
}

// In the child, between fork and exec: async-signal-safe calls only.  What goes wrong is told by the exit
// code, since there is nobody to talk to yet.
[[noreturn]] void BecomeAndExec(const Account& account, bool is_root, int control, int calls,
                                char** argv, char** environment) {
  setsid();
  syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);  // not root's
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Above all that they are to become, so that neither overwrites the other.
  control = fcntl(control, F_DUPFD, kCallsFd + 1);
  calls = fcntl(calls, F_DUPFD, kCallsFd + 1);
  if (control < 0 || calls < 0 || dup2(control, kControlFd) < 0 || dup2(calls, kCallsFd) < 0) {
    _exit(120);
  }
  const int null = open("/dev/null", O_RDWR);
  if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0) {
    _exit(121);
  }
  syscall(SYS_close_range, kCallsFd + 1, ~0U, 0);
  if (is_root && !Become(account)) {
    _exit(122);
  }
  umask(077);
  if (chdir("/") != 0) {
    _exit(123);
  }
  execve(argv[0], argv, environment);
  _exit(errno == ENOENT ? 127 : 126);
}

}  // namespace

absl::StatusOr<Account> FindAccount(const std::string& name) {
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  const int error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) {
    if (error != 0 && error != ENOENT && error != ESRCH) {
      errno = error;
      return errors::CannotStart(name, "looking up the account: " + Errno());
    }
    return errors::BadAccount(name, "there is no such account on the gatekeeper's host");
  }
  Account account{name, found->pw_uid, found->pw_gid, {}, found->pw_dir};
  if (account.uid == 0 && geteuid() == 0) {
    return errors::BadAccount(name, "jobs never run as root");
  }
  if (geteuid() != 0 && account.uid != geteuid()) {
    return errors::BadAccount(name, "the gatekeeper does not run as root and serves its own account only");
  }
  int count = 64;
  account.groups.resize(static_cast<size_t>(count));
  if (getgrouplist(name.c_str(), account.gid, account.groups.data(), &count) < 0) {
    account.groups.resize(static_cast<size_t>(count));
    getgrouplist(name.c_str(), account.gid, account.groups.data(), &count);
  }
  account.groups.resize(static_cast<size_t>(count));
  return account;
}

absl::StatusOr<std::string> AccountDirectory(const std::string& parent, const Account& account) {
  const std::string path = parent + "/" + account.name;
  for (size_t slash = 1; (slash = parent.find('/', slash)) != std::string::npos; ++slash) {
    mkdir(parent.substr(0, slash).c_str(), 0755);
  }
  mkdir(parent.c_str(), 0755);
  const bool is_new = mkdir(path.c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST) {
    return errors::CannotStart(account.name, path + ": " + Errno());
  }
  struct stat status {};
  // The parent is ours alone, so that nobody can put something else under the name meanwhile.  What a gatekeeper made
  // that was killed right here is still ours.
  const bool is_ours = lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == 0;
  if (is_ours && geteuid() == 0 && chown(path.c_str(), account.uid, account.gid) != 0) {
    const std::string why = Errno();
    rmdir(path.c_str());
    return errors::CannotStart(account.name, path + ": " + why);
  }
  if (lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != account.uid ||
      (status.st_mode & 077) != 0) {
    return errors::CannotStart(
        account.name, path + ": must be a directory of that account with mode 0700");
  }
  return path;
}

absl::StatusOr<Child> Launch(const Account& account, const std::vector<std::string>& argv) {
  int control[2];
  int calls[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) {
    return errors::CannotStart(account.name, "socketpair: " + Errno());
  }
  // gRPC reads until there is nothing: neither end may block.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, calls) != 0) {
    const std::string why = Errno();
    close(control[0]);
    close(control[1]);
    return errors::CannotStart(account.name, "socketpair: " + why);
  }
  std::vector<std::string> argument_texts = argv;
  std::vector<std::string> environment_texts = Environment(account);
  std::vector<char*> arguments = Pointers(argument_texts);
  std::vector<char*> environment = Pointers(environment_texts);
  const bool is_root = geteuid() == 0;

  Child child;
  child.pid = _Fork();  // no atfork handlers: other threads may hold their locks
  if (child.pid == 0) {
    BecomeAndExec(account, is_root, control[1], calls[1], arguments.data(), environment.data());
  }
  const std::string why = child.pid < 0 ? "fork: " + Errno() : "";
  close(control[1]);
  close(calls[1]);
  if (child.pid < 0) {
    close(control[0]);
    close(calls[0]);
    return errors::CannotStart(account.name, why);
  }
  child.control_fd = control[0];
  child.calls_fd = calls[0];
  child.pid_fd = static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0));
  CHECK(child.pid_fd >= 0);  // Linux 5.3; our own unreaped child
  return child;
}

}  // namespace sekisho::gatekeeper
