// SPDX-License-Identifier: Apache-2.0
// What a pilot learns of its job from the batch system's variables, and the certificate with which it
// comes: docs/protocol/13-slurm.md.  Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/identity/credential.h"
#include "common/status.h"
#include "proto/nodes.pb.h"

namespace sekisho::agent {

using Variable = std::function<std::string(const char* name)>;  // empty: not set

absl::StatusOr<proto::AgentMessage::Pilot> ReadPilot(const std::string& job_id,
                                                            const Variable& variable);

// Of SLURM_TASKS_PER_NODE, e.g. "2(x3),1": how many are on host `number`.  0: it does not say.
int ProcessesOf(std::string_view tasks_per_node, int number);

// TLS asks for one; it says nothing and nobody believes it: the token counts.
absl::StatusOr<identity::Credential> MadeUpCredential();

}  // namespace sekisho::agent
