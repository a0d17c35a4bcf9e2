// SPDX-License-Identifier: Apache-2.0
// Where a job's files are cached: docs/protocol/17-staging.md, "Cache".  Pure.
#pragma once

#include "qserver/stage_plan.h"

namespace sekisho::qserver {

// Empty: in the account's own place for that.
absl::StatusOr<std::string> PlanCache(const rsl::JobDescription& job, const std::string& home, const StagingRules& rules);

}  // namespace sekisho::qserver
