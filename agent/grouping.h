// SPDX-License-Identifier: Apache-2.0
// Which kind of cgroup this machine offers for tasks, and where ours go.  ChooseGrouping is pure.
#pragma once

#include <string>
#include <vector>

#include "agent/task/spec.h"
#include "common/status.h"

namespace sekisho::agent {

struct CgroupPlace {
  task::Grouping grouping = task::Grouping::kNone;
  std::string parent;  // existing directory in which the agent may make its own
};

// In order of preference, the last always kNone.  `mounts` is /proc/self/mounts, `own` is
// /proc/self/cgroup; `wanted` is "auto", "v2", "v1" or "none".
std::vector<CgroupPlace> CandidatePlaces(const std::string& mounts, const std::string& own,
                                         const std::string& wanted);

// Makes PARENT/sekisho-ID, for the first place that lets us.  FailedPrecondition if `wanted` names
// a kind that this machine does not give us.
absl::StatusOr<CgroupPlace> PrepareCgroup(const std::string& wanted, const std::string& id);

}  // namespace sekisho::agent
