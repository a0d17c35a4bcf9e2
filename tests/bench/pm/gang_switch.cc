// SPDX-License-Identifier: Apache-2.0
// A gang scheduler of one thread: jobs take turns on the same cores, each stopped as a whole and
// let go by sekisho-pmd. docs/operations/pm-goals.md, "Time-sharing".
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "transport/pm/job_file.h"
#include "transport/pm/unix_message.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

constexpr std::uint32_t kTimeoutMs = 5000;

struct Job {
  std::string file;
  std::uint16_t context = 0;
  int key = -1;
};

[[noreturn]] void Die(const std::string& what, int error) {
  fprintf(stderr, "sekisho-pm-gang: %s: %s\n", what.c_str(), strerror(error));
  exit(1);
}

Job OpenJob(const char* file) {
  JobFile job;
  int line;
  if (ReadJobFile(file, job, line)) Die(file, EINVAL);
  const int key = open(job.key_path.get(), O_RDONLY | O_CLOEXEC);
  if (key < 0) Die(job.key_path.get(), errno);
  return {file, job.context, key};
}

// 0 or errno; ENOENT: the job has no node here, it is over.
int Tell(const char* daemon, const Job& job, Ask what) {
  const int fd = ConnectDaemon(daemon);
  if (fd < 0) return errno;
  AskMessage ask;
  ask.ask = what;
  ask.config.context = job.context;
  ask.config.node = 0;
  ask.timeout_ms = kTimeoutMs;
  AnswerMessage answer;
  Received received;
  const std::array<int, 1> fds = {job.key};
  const int error = AskDaemon(fd, ask, fds, kTimeoutMs + 1000, answer, received);
  close(fd);
  return error;
}

struct Times {
  std::vector<double> us;

  double at(double share) {
    if (us.empty()) return 0;
    std::sort(us.begin(), us.end());
    return us[static_cast<std::size_t>(share * static_cast<double>(us.size() - 1))];
  }
};

double Since(Nanos begin) { return static_cast<double>(Wire::Now() - begin) / 1000; }

int Main(int argc, char** argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: sekisho-pm-gang DAEMON SLICE-MS JOB JOB...  (all of them run)\n");
    return 2;
  }
  const char* daemon = argv[1];
  const auto slice = static_cast<useconds_t>(atof(argv[2]) * 1000);
  std::vector<Job> jobs;
  for (int i = 3; i < argc; ++i) jobs.push_back(OpenJob(argv[i]));
  // All but the first wait for their turn.
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    if (const int error = Tell(daemon, jobs[i], Ask::kStop)) Die(jobs[i].file, error);
  }
  Times stops, switches;
  std::size_t turn = 0;
  unsigned late = 0;
  while (jobs.size() > 1) {
    usleep(slice);
    const Nanos begin = Wire::Now();
    const int stopped = Tell(daemon, jobs[turn], Ask::kStop);
    const double stop_us = Since(begin);
    if (stopped == ENOENT) {
      jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(turn));
      turn = (turn + jobs.size() - 1) % jobs.size();  // so that the next one is next
    } else if (stopped == ETIMEDOUT) {
      ++late;  // it may be ending; it goes on meanwhile
      continue;
    } else if (stopped != 0) {
      Die("stop " + jobs[turn].file, stopped);
    } else {
      stops.us.push_back(stop_us);
    }
    turn = (turn + 1) % jobs.size();
    if (const int error = Tell(daemon, jobs[turn], Ask::kGo)) Die("go " + jobs[turn].file, error);
    if (stopped == 0) switches.us.push_back(Since(begin));
  }
  printf(
      "{\"switches\": %zu, \"late\": %u, \"stop_us\": {\"p50\": %.0f, \"p99\": %.0f, \"max\": "
      "%.0f}, "
      "\"switch_us\": {\"p50\": %.0f, \"p99\": %.0f, \"max\": %.0f}}\n",
      switches.us.size(), late, stops.at(0.5), stops.at(0.99), stops.at(1), switches.at(0.5),
      switches.at(0.99), switches.at(1));
  return 0;
}

}  // namespace
}  // namespace sekisho::pm

int main(int argc, char** argv) { return sekisho::pm::Main(argc, argv); }
