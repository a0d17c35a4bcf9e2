// SPDX-License-Identifier: Apache-2.0
// A user's word, while a job lives, on where its output goes: docs/protocol/17-staging.md, "Redirection".  Pure.
#pragma once

#include <string>

#include "common/status.h"
#include "qserver/job.h"
#include "qserver/stage_plan.h"

namespace sekisho::qserver {

// What stands of it.
rsl::Redirections RedirectionsOf(const proto::JobStatus& job);

// What the update changes; nothing is set of a stream that it does not name, or that goes there already.
absl::StatusOr<proto::JobEvent::Redirected> JudgeRedirection(const Job& job, const rsl::JobDescription& update,
                                                             const std::string& home, const StagingRules& rules);

}  // namespace sekisho::qserver
