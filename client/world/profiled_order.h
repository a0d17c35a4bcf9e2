// SPDX-License-Identifier: Apache-2.0
// `sekisho mpirun --rankmap auto`: runs the program for a short while, and says in which order its ranks should stand.
// docs/protocol/15-mpirun.md, "The best order".
#pragma once

#include <vector>

#include "client/world/mpirun_options.h"
#include "client/world/world_part.h"
#include "client/world/world_run.h"

namespace sekisho::client {

// The job of the short run: its ranks report.
JobOptions ProfiledJob(JobOptions job, const MpirunOptions& options);

struct ProfiledOrder {
  int exit_code = 0;              // else: the short run's own, and the program is not worth another
  std::vector<int> rank_of_slot;  // empty: nothing is known, the machine file's
};
// `parts`: of that job.  A report of an earlier run is used again.
awaitable<ProfiledOrder> OrderByProfile(std::vector<WorldPart> parts, WorldOptions world);

}  // namespace sekisho::client
