// SPDX-License-Identifier: Apache-2.0
// The second word of a submission in two phases: we know the job's name, and it may start.
#pragma once

#include <string>

#include "client/site/reach_again.h"

namespace sekisho::client {

// Sent again while no answer comes, until the time that the site gives for it is over.
awaitable<absl::Status> Commit(Session& session, std::string job_id, Patience patience);

// The same beside something else: it says by itself what went wrong.
awaitable<void> CommitOrSay(Session& session, std::string job_id, Patience patience);

}  // namespace sekisho::client
