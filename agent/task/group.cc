// SPDX-License-Identifier: Apache-2.0
#include "agent/task/group.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "agent/task/record.h"

namespace sekisho::agent::task {
namespace {

constexpr int kStopPasses = 100;
constexpr int kChildPasses = 10000;

bool WriteTo(int dir_fd, const char* name, const std::string& text) {
  const int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  const bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return ok;
}

// Calls `visit(pid, stat)` for every process.
template <typename Visit>
void ForEachProcess(Visit visit) {
  DIR* proc = opendir("/proc");
  if (proc == nullptr) {
    return;
  }
  std::string text;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    Stat stat;
    if (pid > 0 && ReadFile(dirfd(proc), (std::string(entry->d_name) + "/stat").c_str(), text) &&
        ParseStat(text, stat)) {
      visit(pid, stat);
    }
  }
  closedir(proc);
}

// A process that stays what it is, unlike its number.
class Process {
 public:
  explicit Process(pid_t pid) : fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  Process(Process&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Process() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  bool Send(int signal) const {
    return fd_ >= 0 && syscall(SYS_pidfd_send_signal, fd_, signal, nullptr, 0) == 0;
  }

 private:
  int fd_;
};

// Stops all before it kills any, so that none can fork behind our back.
void StopThenKill(pid_t root) {
  const auto members = [root] { return Descendants(root); };
  std::vector<pid_t> stopped;
  for (int pass = 0; pass < kStopPasses; ++pass) {
    std::vector<pid_t> found = members();
    std::erase_if(found, [&](pid_t pid) { return std::find(stopped.begin(), stopped.end(), pid) != stopped.end(); });
    const std::vector<pid_t> reached = SendToMembers(found, SIGSTOP, members);
    if (reached.empty()) {
      break;
    }
    stopped.insert(stopped.end(), reached.begin(), reached.end());
  }
  SendToMembers(stopped, SIGKILL, members);
}

// Whoever forks and ends each moment is gone before a listing of all processes tells of him.  As an orphan he is our
// child: of those there is a list of its own, and their numbers stay theirs until we wait for them.
void KillChildren() {
  std::set<pid_t> killed;
  std::string text;
  bool is_new = true;
  for (int pass = 0; is_new && pass < kChildPasses && ReadFile(AT_FDCWD, "/proc/thread-self/children", text); ++pass) {
    is_new = false;
    for (const char* at = text.c_str(); *at >= '0' && *at <= '9';) {
      char* end = nullptr;
      const auto pid = static_cast<pid_t>(std::strtol(at, &end, 10));
      if (killed.insert(pid).second) {
        kill(pid, SIGKILL);
        is_new = true;
      }
      at = end + (*end == ' ' ? 1 : 0);
    }
  }
}

bool IsOf(pid_t pid, uid_t uid) {
  std::string text;
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  if (!ReadFile(AT_FDCWD, path.c_str(), text)) {
    return false;
  }
  const size_t at = text.find("\nUid:");
  return at != std::string::npos && std::strtoul(text.c_str() + at + 5, nullptr, 10) == uid;
}

// A zero byte ends each.
bool HasVariable(pid_t pid, const std::string& variable) {
  std::string text;
  const std::string path = "/proc/" + std::to_string(pid) + "/environ";
  const std::string zero(1, '\0');
  return ReadFile(AT_FDCWD, path.c_str(), text) && (zero + text).find(zero + variable + zero) != std::string::npos;
}

}  // namespace

bool ParseStat(const std::string& text, Stat& stat) {
  const size_t name_end = text.rfind(')');
  int group = 0;
  return name_end != std::string::npos &&
         std::sscanf(text.c_str() + name_end + 1, " %c %d %d %d", &stat.state, &stat.parent, &group,
                     &stat.session) == 4;
}

std::vector<pid_t> Descendants(pid_t root) {
  std::vector<std::pair<pid_t, pid_t>> edges;  // child, parent
  ForEachProcess([&](pid_t pid, const Stat& stat) {
    if (stat.state != 'Z') {
      edges.emplace_back(pid, stat.parent);
    }
  });
  std::vector<pid_t> found;
  std::vector<pid_t> parents{root};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    for (const auto& [child, its_parent] : edges) {
      if (its_parent == parent) {
        found.push_back(child);
        parents.push_back(child);
      }
    }
  }
  return found;
}

std::vector<pid_t> SessionMembers(pid_t session) {
  std::vector<pid_t> found;
  ForEachProcess([&](pid_t pid, const Stat& stat) {
    if (stat.session == session) {
      found.push_back(pid);
    }
  });
  return found;
}

void KillSession(pid_t session, uid_t uid, const std::string& mark) {
  const auto members = [&] {
    std::vector<pid_t> found = SessionMembers(session);
    std::erase_if(found, [uid](pid_t pid) { return !IsOf(pid, uid); });
    return found;
  };
  const std::vector<pid_t> found = members();
  const auto is_marked = [&](pid_t pid) { return HasVariable(pid, mark); };
  if (mark.empty() || std::any_of(found.begin(), found.end(), is_marked)) {
    SendToMembers(found, SIGKILL, members);
  }
}

std::vector<pid_t> SendToMembers(const std::vector<pid_t>& pids, int signal, const ListMembers& members) {
  constexpr size_t kAtOnce = 256;  // in pieces, for our few descriptors
  std::vector<pid_t> reached;
  for (size_t begin = 0; begin < pids.size(); begin += kAtOnce) {
    std::vector<std::pair<pid_t, Process>> open;
    for (size_t i = begin; i < std::min(begin + kAtOnce, pids.size()); ++i) {
      open.emplace_back(pids[i], Process(pids[i]));
    }
    const std::vector<pid_t> still = members();
    for (const auto& [pid, process] : open) {
      if (std::find(still.begin(), still.end(), pid) != still.end() && process.Send(signal)) {
        reached.push_back(pid);
      }
    }
  }
  return reached;
}

Group::Group(Grouping grouping, std::string cgroup, pid_t root)
    : grouping_(cgroup.empty() ? Grouping::kNone : grouping),
      cgroup_(std::move(cgroup)),
      root_(root) {
  if (grouping_ != Grouping::kNone) {
    fd_ = open(cgroup_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
}

Group::~Group() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

void Group::Create(int64_t process_limit) {
  if (grouping_ == Grouping::kNone) {
    return;
  }
  mkdir(cgroup_.c_str(), 0755);
  if (fd_ < 0) {
    fd_ = open(cgroup_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  if (fd_ < 0) {
    grouping_ = Grouping::kNone;
  } else if (process_limit > 0) {
    WriteTo(fd_, "pids.max",
            std::to_string(process_limit));  // where the site gives us the controller
  }
}

bool Group::Join() { return grouping_ == Grouping::kNone || WriteTo(fd_, "cgroup.procs", "0"); }

std::vector<pid_t> Group::Members() const {
  if (grouping_ == Grouping::kNone) {
    return Descendants(root_);
  }
  std::string text;
  std::vector<pid_t> members;
  if (fd_ >= 0 && ReadFile(fd_, "cgroup.procs", text)) {
    for (const char* at = text.c_str(); *at != '\0';) {
      char* end = nullptr;
      const long pid = std::strtol(at, &end, 10);
      if (end == at) {
        break;
      }
      if (pid > 0) {  // 0: of another process namespace
        members.push_back(static_cast<pid_t>(pid));
      }
      at = end + (*end == '\n' ? 1 : 0);
    }
  }
  return members;
}

void Group::SignalAll(int signal) const {
  SendToMembers(Members(), signal, [this] { return Members(); });
}

void Group::KillOnce(bool thorough) {
  switch (grouping_) {
    case Grouping::kV2:
      if (!WriteTo(fd_, "cgroup.kill", "1")) {  // before Linux 5.14
        Freeze();
        SignalAll(SIGKILL);
        Thaw();
      }
      break;
    case Grouping::kV1:
      Freeze();
      SignalAll(SIGKILL);
      Thaw();  // a frozen process of v1 does not even die
      break;
    case Grouping::kNone:
      thorough = true;
      break;
  }
  if (thorough) {
    if (root_ == getpid()) {
      KillChildren();
    }
    StopThenKill(root_);
  }
}

void Group::Freeze() {
  if (grouping_ == Grouping::kV2) {
    WriteTo(fd_, "cgroup.freeze", "1");
  } else if (grouping_ == Grouping::kV1) {
    WriteTo(fd_, "freezer.state", "FROZEN");
  } else {
    SignalAll(SIGSTOP);
  }
}

void Group::Thaw() {
  if (grouping_ == Grouping::kV2) {
    WriteTo(fd_, "cgroup.freeze", "0");
  } else if (grouping_ == Grouping::kV1) {
    WriteTo(fd_, "freezer.state", "THAWED");
  } else {
    SignalAll(SIGCONT);
  }
}

bool Group::Remove() {
  return grouping_ == Grouping::kNone || rmdir(cgroup_.c_str()) == 0 || errno == ENOENT;
}

}  // namespace sekisho::agent::task
