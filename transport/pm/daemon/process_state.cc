// SPDX-License-Identifier: Apache-2.0
// Whether another process runs, is stopped, or is dead.
#include "transport/pm/daemon/process_state.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <memory>

namespace sekisho::pm {
namespace {

struct Closer {
  void operator()(DIR* folder) const { closedir(folder); }
  void operator()(FILE* file) const { fclose(file); }
};

bool ReadLine(const char* path, std::array<char, 512>& line) {
  const std::unique_ptr<FILE, Closer> file(fopen(path, "re"));
  return file && fgets(line.data(), line.size(), file.get()) != nullptr;
}

}  // namespace

ProcessState ReadProcessState(pid_t pid) {
  std::array<char, 64> name;
  snprintf(name.data(), name.size(), "/proc/%d/task", static_cast<int>(pid));
  const std::unique_ptr<DIR, Closer> folder(opendir(name.data()));
  if (!folder) return {};
  ProcessState state{true, 0};
  std::size_t threads = 0;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    std::array<char, 360> path;
    std::array<char, 512> line;
    snprintf(path.data(), path.size(), "%s/%s/stat", name.data(), entry->d_name);
    if (!ReadLine(path.data(), line)) return {};
    const char* after = strrchr(line.data(), ')');
    if (after == nullptr || (after[2] != 'T' && after[2] != 't')) return {};
    // Time on a processor in ns, time waiting for one, number of turns.
    snprintf(path.data(), path.size(), "%s/%s/schedstat", name.data(), entry->d_name);
    if (!ReadLine(path.data(), line)) return {};
    char* rest = nullptr;
    state.runs += strtoull(line.data(), &rest, 10);
    (void)strtoull(rest, &rest, 10);
    state.runs += strtoull(rest, nullptr, 10);
    ++threads;
  }
  return threads > 0 ? state : ProcessState{};
}

std::int64_t ProcessorTime(pid_t pid) {
  clockid_t clock;
  timespec time;
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

bool IsRunnable(pid_t pid) {
  std::array<char, 64> path;
  std::array<char, 512> line;
  snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(pid));
  if (!ReadLine(path.data(), line)) return false;
  const char* after = strrchr(line.data(), ')');
  return after != nullptr && after[1] != 0 && after[2] == 'R';
}

int OpenPidFd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

bool IsReadable(int fd) {
  pollfd state = {fd, POLLIN, 0};
  return poll(&state, 1, 0) > 0;
}

}  // namespace sekisho::pm
