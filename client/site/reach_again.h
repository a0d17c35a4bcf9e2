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

// How long a call is made again that was lost on its way.
struct Patience {
  std::chrono::seconds time{60};
  bool reopens = false;  // we make the connection again; else somebody else does
};

// After it was lost: waits until it may be made again.  False: the outage has lasted as long as it may.
awaitable<bool> MayTryAgain(Session& session, Outage& outage, bool reopens);

// "lost the connection to the site; `what` goes on, ..."
void SayLost(const std::string& what, std::chrono::seconds patience);

// "no answer yet, trying for ... s: WHY"
void SayUnanswered(const absl::Status& why, std::chrono::seconds patience);

// NotFound: nobody came back to `what` in time.
absl::Status NotReachedAgain(const std::string& what, const absl::Status& why, const std::string& remedy);

}  // namespace sekisho::client
