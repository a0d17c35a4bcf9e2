// SPDX-License-Identifier: Apache-2.0
#include "qserver/spawn.h"

#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace sekisho::qserver {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) {
    pointers.push_back(const_cast<char*>(word.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// In the child of a process with many threads: system calls only.
[[noreturn]] void Become(char* const* words, char* const* environment, const std::array<int, 3>& streams,
                         const RunAs* as) {
  for (int number = 0; number < 3; ++number) {
    dup2(streams[number], number);
  }
  close_range(3, ~0U, 0);
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setsid();  // what it starts can be ended with it
  if (as != nullptr && (as->uid == 0 || setgroups(as->groups.size(), as->groups.data()) != 0 ||
                        setresgid(as->gid, as->gid, as->gid) != 0 || setresuid(as->uid, as->uid, as->uid) != 0)) {
    _exit(126);
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
  RunAs as{entry.pw_uid, entry.pw_gid, std::vector<gid_t>(1024), entry.pw_dir};
  int count = int(as.groups.size());
  getgrouplist(entry.pw_name, entry.pw_gid, as.groups.data(), &count);
  as.groups.resize(std::min(size_t(count), as.groups.size()));
  return as;
}

absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                            const std::array<int, 3>& streams, const std::optional<RunAs>& as) {
  const auto pointers = Pointers(words);
  const auto variables = Pointers(environment);
  const pid_t pid = fork();
  if (pid == 0) {
    Become(pointers.data(), variables.data(), streams, as ? &*as : nullptr);
  }
  if (pid < 0) {
    return absl::InternalError(fmt::format("cannot run {}: {}", words[0], std::strerror(errno)));
  }
  return pid;
}

}  // namespace sekisho::qserver
