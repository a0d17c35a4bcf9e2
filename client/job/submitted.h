// SPDX-License-Identifier: Apache-2.0
// What a job needs of its user before it is submitted, and what it then waits for if nobody stays with it.
#pragma once

#include <string>

#include "client/job/delegate.h"
#include "client/job/staged_files.h"

namespace sekisho::client {

// The files that it names, with their sums; and whether we could give it a credential.
absl::StatusOr<ClientFiles> PrepareJob(const Session& session, const std::string& rsl, Delegation delegation);

struct Awaited {
  bool commits = true;
  Delegation delegation = Delegation::kNone;
  ClientFiles files;
  bool is_quiet = false;  // no bar of its files
};
// The second word, a credential, its files: in this order, until one fails.  An exit code.
awaitable<int> GiveWhatItAwaits(Session& session, proto::SubmitReply reply, std::string request_id, Awaited awaited);

}  // namespace sekisho::client
