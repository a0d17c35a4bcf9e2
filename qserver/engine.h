// SPDX-License-Identifier: Apache-2.0
// A batch system that a site has beside, or in place of, its own allocator: it says when and where a job
// runs, and starts a pilot there for it.  docs/protocol/13-slurm.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/loop.h"
#include "common/status.h"

namespace sekisho::qserver {

// What a batch system has to know of a job.  What the job runs is the queue server's business.
struct EngineRequest {
  std::string job_id;
  std::string account;
  std::string token;  // its pilots show it
  int processes = 1;
  int hosts = 0;          // 0 = any
  int64_t wall_time_s = 0;  // 0 = none
  int64_t memory_mb = 0;    // of each host; 0 = any
  bool is_exclusive = false;
  std::string partition;
  std::string project;
};

// What it says of a job that it holds, in its own words.
struct EngineState {
  bool has_ended = false;
  bool is_waiting = false;
  std::string state;
  std::string reason;  // why it waits

  bool operator==(const EngineState&) const = default;
};

class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string name() const = 0;  // as users know it: "Slurm"
  // Its own name of the job.  Unavailable: it may take it later; else never.
  virtual awaitable<absl::StatusOr<std::string>> Submit(EngineRequest request) = 0;
  // As Submit, but nothing is left there.
  virtual awaitable<absl::Status> Check(EngineRequest request) = 0;
  // Takes the job out of it, however often it was submitted there.
  virtual awaitable<absl::Status> Cancel(std::string job_id, std::string account) = 0;
  // All jobs that it knows, in one question.
  virtual awaitable<absl::StatusOr<std::map<std::string, EngineState>>> Query() = 0;
};

// Of a contact's service: jobmanager-slurm, jobmanager-slurm-PARTITION.
inline constexpr std::string_view kEngineService = "jobmanager-slurm";
inline bool IsEngineService(std::string_view service) {
  return service == kEngineService ||
         (service.starts_with(kEngineService) && service.substr(kEngineService.size()).starts_with('-'));
}

// A queue or project that may stand on a command line; the same in every locale.
inline bool IsEngineName(std::string_view text) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return text.size() <= 64 && text.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace sekisho::qserver
