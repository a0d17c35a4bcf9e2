// SPDX-License-Identifier: Apache-2.0
// How many jobs wait and run, by the service they came by: counted as jobs change, so that to say it costs
// the same with ten jobs and with a hundred thousand.  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "proto/job.pb.h"

namespace sekisho::qserver {

class Census {
 public:
  struct Share {
    int64_t running = 0;  // have processors, suspended or not
    int64_t suspended = 0;
    int64_t waiting = 0;
    int64_t slots_used = 0;
    int64_t slots_requested = 0;
    double average_wait_ms = 0;  // of those that began lately
    int64_t began = 0;
  };
  // What a job was last counted as.
  struct Mark {
    const std::string* share = nullptr;  // a key of ours
    enum class As { kNothing, kWaiting, kRunning, kSuspended } as = As::kNothing;
    int64_t slots = 0;
  };

  // After an event of the job at `time_ms`; `mark` is the job's own.
  void Count(const proto::JobStatus& job, bool has_processors, int64_t time_ms, Mark& mark);

  // jobmanager-agent[-QUEUE] or jobmanager-slurm[-PARTITION].
  static std::string ServiceOf(const proto::JobStatus& job);

  const std::map<std::string, Share>& shares() const { return shares_; }  // that a job ever came by

 private:
  void Add(const Mark& mark, int sign);

  std::map<std::string, Share> shares_;
};

}  // namespace sekisho::qserver
