// SPDX-License-Identifier: Apache-2.0
// What a job needs of its user before it is submitted, and what it then waits for if nobody stays with it.
#pragma once

#include <chrono>
#include <string>

#include "client/job/delegate.h"
#include "client/job/staged_files.h"

namespace sekisho::client {

// The files that it names, with their sums; and whether we could give it a credential.
absl::StatusOr<ClientFiles> PrepareJob(const Session& session, const std::string& rsl, Delegation delegation);

// A submission without an answer, yes or no.
bool IsLost(const absl::Status& status);

// Sends it, and again while no answer comes, over another connection: the same request makes no second job.
inline constexpr std::chrono::seconds kSubmitPatience{300};
awaitable<absl::StatusOr<proto::SubmitReply>> SendSubmission(Session& session, proto::SignedRequest request,
                                                             std::string request_id);

// Nobody has said yes or no to it, and no more is tried.
absl::Status StillUnknown(const absl::Status& why, const std::string& request_id);

struct Awaited {
  bool commits = true;
  Delegation delegation = Delegation::kNone;
  ClientFiles files;
  bool is_quiet = false;  // no bar of its files
};
// The second word, a credential, its files: in this order, until one fails.  An exit code.
awaitable<int> GiveWhatItAwaits(Session& session, proto::SubmitReply reply, std::string request_id, Awaited awaited);

}  // namespace sekisho::client
