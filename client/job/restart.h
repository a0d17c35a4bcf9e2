// SPDX-License-Identifier: Apache-2.0
// `&(restart = JOB)`: a command takes up a job that exists.  docs/protocol/4-submission.md, "Restart".
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "client/job/delegate.h"
#include "rsl/check.h"

namespace sekisho::client {

struct RestartOptions {
  std::string resource;                // -r; empty: not given
  bool has_options_of_new_jobs = false;  // --dry-run and the like
  Delegation delegation = Delegation::kNone;
  bool follows = false;                // to its end, as `run` does; else its name is printed
  bool cancels_on_interrupt = true;
  bool is_quiet = false;               // no bar of files that it fetches
  std::chrono::seconds patience{300};
  rsl::JobDescription restart;        // Restart() fills in these two
  std::optional<std::string> update;  // of the job's output
};

bool IsRestart(const rsl::CheckReport& checked);

// `rsl` is a restart, and good.  The exit code of the command.
int Restart(const std::string& rsl, RestartOptions options);

}  // namespace sekisho::client
