// SPDX-License-Identifier: Apache-2.0
// What a user has signed so that the leader of one multi-site program may call this gatekeeper for him:
// docs/protocol/15-mpirun.md.  Pure.
#pragma once

#include <string>

#include "common/identity/judged_chains.h"
#include "common/status.h"

namespace sekisho::gatekeeper {

// Who signed it.  `own_subject`: the gatekeeper that it must be for.
absl::StatusOr<identity::Identity> JudgePassage(const std::string& passage, const std::string& own_subject,
                                                identity::JudgedChains& signers, identity::Time now);

}  // namespace sekisho::gatekeeper
