// SPDX-License-Identifier: Apache-2.0
// What a caller asks for, checked: docs/protocol/4-submission.md, "Checks".  Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "proto/job.pb.h"

namespace sekisho::jobmanager {

// As the gatekeeper says it.
struct Caller {
  std::string subject;
  std::string account;
  std::string service;
  std::string queue;  // of the service's name; may be empty
  std::string peer;
  bool is_limited = false;
};

struct Here {
  std::string site;
  std::string gatekeeper_subject;
};

// The signed body, if it was meant for this site, gatekeeper, account and service.  The signature is the
// queue server's to verify; what is judged here only spares the user a longer way to a refusal.
absl::StatusOr<proto::RequestBody> ReadRequest(const proto::SignedRequest& request, const Caller& caller,
                                               const Here& here);

struct NewJob {
  proto::JobEvent submitted;  // without time and sequence
  bool is_dry_run = false;
  int64_t commit_within_s = 0;  // RSL two_phase
};

// RSL errors carry GRAM's numbers.
absl::StatusOr<NewJob> JudgeSubmit(const proto::SignedRequest& request, const proto::RequestBody& body,
                                   const Caller& caller, const Here& here);

}  // namespace sekisho::jobmanager
