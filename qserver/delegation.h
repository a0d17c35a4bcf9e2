// SPDX-License-Identifier: Apache-2.0
// Whose certificates become a job's credential: docs/protocol/19-delegation.md.  No I/O.
#pragma once

#include <functional>

#include "qserver/admission.h"
#include "qserver/offers.h"
#include "qserver/queue.h"

namespace sekisho::qserver {

// Whom certificates speak for, if they are to be trusted.
using JudgeChain = std::function<absl::StatusOr<identity::Identity>(const identity::Chain&)>;

struct DelegationCourt {
  const Queue& queue;
  Offers& offers;
  const AdmissionRules& rules;
  JudgeChain judge_chain;
};

struct Delegated {
  identity::Credential credential;
  proto::JobEvent::Delegated event;
};

// A verified Delegate.  Fresh, by the job's owner, and for the key that stands: nobody else can make such a request, and
// nobody can send it again.
absl::StatusOr<Delegated> JudgeDelegate(const Verified& verified, DelegationCourt court, identity::Time now);

}  // namespace sekisho::qserver
