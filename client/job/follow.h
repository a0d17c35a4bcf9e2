// SPDX-License-Identifier: Apache-2.0
// Stays with a job until it has ended: writes its output, feeds its input, passes Ctrl-C on.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <set>

#include "client/site/session.h"

namespace sekisho::client {

struct FollowOptions {
  std::string job_id;             // empty: learned from the stream's first message
  std::string request_id;         // of its submission
  bool feeds_input = false;       // our standard input goes to task 0
  bool cancels_on_interrupt = true;  // first Ctrl-C cancels, second leaves; false: the first leaves
  proto::AttachRequest again;        // asked for when the connection was lost
  std::chrono::seconds patience{300};  // so long it is tried
  std::array<std::set<int>, 2> shown{{{1}, {2}}};  // as which of our descriptors each of the job's streams is
  std::function<void(const proto::SubmitReply&)> on_submitted;
  std::function<void(const proto::JobEvent&)> on_event;
};

struct Followed {
  proto::JobStatus job;          // as last heard
  std::string name;              // SITE/ID
  bool was_interrupted = false;  // by Ctrl-C
  bool was_left = false;         // the job may still run
};

using UpdateStream = std::shared_ptr<rpc::ClientReader<proto::Update>>;

// A connection that breaks after the job was submitted is made again, and nothing is lost or shown twice.
// NotFound ("state unknown") if that does not succeed in time.
awaitable<absl::StatusOr<Followed>> Follow(Session& session, UpdateStream updates, FollowOptions options);

// Sends the signed request to end a job, named by its id or, if that is empty, by its submission.
awaitable<absl::StatusOr<proto::CommandReply>> Cancel(Session& session, const std::string& job_id,
                                                      const std::string& request_id = "");

}  // namespace sekisho::client
