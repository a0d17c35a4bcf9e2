// SPDX-License-Identifier: Apache-2.0
// The way back to a site whose connection was lost: docs/operations/cli.md, "A connection that is lost".
#pragma once

#include <string>

#include "client/site/outage.h"
#include "client/site/session.h"

namespace sekisho::client {

// Another connection in place of one that was lost by `why`.  Unavailable: none as long as the outage may last.
// Cancelled: `gives_up`, which `woken` tells of.
awaitable<absl::Status> ReachAgain(Session& session, Outage& outage, absl::Status why, const bool& gives_up,
                                   Signal& woken);
awaitable<absl::Status> ReachAgain(Session& session, Outage& outage, absl::Status why);

// "lost the connection to the site; `what` goes on, ..."
void SayLost(const std::string& what, std::chrono::seconds patience);

// NotFound: nobody came back to `what` in time.
absl::Status NotReachedAgain(const std::string& what, const absl::Status& why, const std::string& remedy);

}  // namespace sekisho::client
