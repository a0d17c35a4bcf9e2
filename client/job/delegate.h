// SPDX-License-Identifier: Apache-2.0
// Gives a job's tasks a credential of ours: docs/protocol/19-delegation.md.  We sign a key that the site's queue server has
// made, and only if it says so itself: no machine on the way can put in a key of its own.
#pragma once

#include <string>

#include "client/site/reach_again.h"

namespace CLI {
class App;
}

namespace sekisho::client {

enum class Delegation { kNone, kLimited, kFull };

// --delegate and -D, of verbs that submit one job.
struct DelegateOptions {
  bool is_wanted = false;
  bool is_full = false;

  Delegation what() const {
    return is_full ? Delegation::kFull : is_wanted ? Delegation::kLimited : Delegation::kNone;
  }
};
void AddDelegateOptions(CLI::App& verb, DelegateOptions& options);

// Before anything is submitted: InvalidArgument if sites.json does not say whose word on the site's keys to take.
absl::Status CheckDelegation(const Session& session, Delegation what);

// The request that does so.
awaitable<absl::StatusOr<proto::SignedRequest>> SignDelegate(Session& session, std::string site, std::string job_id,
                                                             Delegation what);

// As long as our own credential lasts.  `site`: as it names itself, should we not know its name.  In place of the one
// before, if there is one.
awaitable<absl::Status> Delegate(Session& session, std::string site, std::string job_id, Delegation what,
                                 Patience patience);

// For a command that has just submitted a job by that request id: what goes wrong is printed, and ends the job, unless it
// was there before.  Its exit code.
awaitable<int> DelegateOrCancel(Session& session, proto::SubmitReply reply, std::string request_id, Delegation what,
                                Patience patience);

// `proxy refresh JOB` and `run -y JOB`.
struct RefreshOptions {
  bool is_full = false;
  std::string save_request;  // write it there, and send nothing
};
awaitable<int> RefreshCredential(Session& session, std::string job_id, RefreshOptions options);

// What the site thinks that the submitter should know.
void PrintWarnings(const proto::SubmitReply& reply);

// "the job's credential ends at ..., in 20 min; ..."
std::string EndingText(const std::string& name, int64_t until_ms, int64_t now_ms);

}  // namespace sekisho::client
