// SPDX-License-Identifier: Apache-2.0
// How many jobs wait and run, by the service they came by: counted as jobs change, so that to say it costs
// the same with ten jobs and with a hundred thousand.  Jobs themselves are kept only of users who agreed to
// that.  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "proto/job.pb.h"
#include "proto/site_state.pb.h"

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
    bool is_public = false;
  };
  static constexpr size_t kPublicMost = 1'000;

  // `public_subjects`, normalized: whose jobs may be seen by anybody.
  explicit Census(std::set<std::string> public_subjects = {}) : public_subjects_(std::move(public_subjects)) {}

  // After an event of the job at `time_ms`; `mark` is the job's own.
  void Count(const proto::JobStatus& job, bool has_processors, int64_t time_ms, Mark& mark);

  // jobmanager-agent[-QUEUE] or jobmanager-slurm[-PARTITION].
  static std::string ServiceOf(const proto::JobStatus& job);

  const std::map<std::string, Share>& shares() const { return shares_; }  // that a job ever came by
  // Public jobs that wait or run, by id; of more than kPublicMost those that came first.
  const std::map<std::string, proto::ActivityState>& activities() const { return activities_; }

 private:
  void Add(const Mark& mark, int sign);
  void Show(const proto::JobStatus& job, const Mark& mark);

  const std::set<std::string> public_subjects_;
  std::map<std::string, Share> shares_;
  std::map<std::string, proto::ActivityState> activities_;
};

}  // namespace sekisho::qserver
