// SPDX-License-Identifier: Apache-2.0
// The second word of a submission in two phases: we know the job's name, and it may start.
#pragma once

#include <chrono>
#include <string>

#include "client/site/session.h"

namespace sekisho::client {

// Sent again while no answer comes, until the time that the site gives for it is over.
awaitable<absl::Status> Commit(Session& session, std::string job_id, std::chrono::seconds within);

// The same beside something else: it says by itself what went wrong.
awaitable<void> CommitOrSay(Session& session, std::string job_id, std::chrono::seconds within);

}  // namespace sekisho::client
