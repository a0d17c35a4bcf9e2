// SPDX-License-Identifier: Apache-2.0
// Stays with a job until it has ended: writes its output, feeds its input, passes Ctrl-C on.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <set>

#include "client/site/session.h"

namespace sekisho::client {

struct FollowOptions {
  std::string job_id;  // empty: `submission` makes it, which is sent again while nobody answers
  std::optional<proto::SignedRequest> submission;
  std::string request_id;  // of it
  bool feeds_input = false;       // our standard input goes to task 0
  bool cancels_on_interrupt = true;  // first Ctrl-C cancels, second leaves; false: the first leaves
  proto::AttachRequest wanted;       // of the job, its id apart
  std::chrono::seconds patience{300};  // so long it is tried
  std::array<std::set<int>, 2> shown{{{1}, {2}}};  // as which of our descriptors each of the job's streams is
  std::function<void(const proto::SubmitReply&)> on_submitted;
  std::function<bool(const proto::JobEvent&)> on_event;  // false: enough, the job goes on without us
};

struct Followed {
  proto::JobStatus job;          // as last heard
  std::string name;              // SITE/ID
  bool was_interrupted = false;  // by Ctrl-C
  bool was_left = false;         // the job may still run
};

// A connection that breaks is made again, and nothing is lost or shown twice.  If that does not succeed in time,
// NotFound ("state unknown") of a job, StillUnknown of a submission.
awaitable<absl::StatusOr<Followed>> Follow(Session& session, FollowOptions options);

// Sends the signed request to end a job, named by its id or, if that is empty, by its submission.
awaitable<absl::StatusOr<proto::CommandReply>> Cancel(Session& session, const std::string& job_id,
                                                      const std::string& request_id = "");

}  // namespace sekisho::client
