// SPDX-License-Identifier: Apache-2.0
// Job tokens: what a site's queue server gives a job's tasks, so that a relay lets them in.
// docs/protocol/10-nxproxy.md.  Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/identity/chain.h"
#include "common/identity/credential.h"
#include "common/identity/trust_store.h"

namespace sekisho::identity {

inline constexpr size_t kTokenBytesMax = 32 * 1024;

// "Who shows this may use the relay for this job."
struct JobToken {
  std::string site;
  std::string job;
  std::string owner;  // subject
  Time not_before;
  Time not_after;
  std::string id;  // no two tokens have the same

  friend bool operator==(const JobToken&, const JobToken&) = default;
};

// "nxt1.<base64url>", one line.  InvalidArgument if a field is empty or has a line break.
absl::StatusOr<std::string> MintJobToken(const JobToken& token, const Credential& signer);

struct VerifiedToken {
  JobToken token;
  Identity signer;
};

// Chain, signature and times, with `tolerance` for clocks that differ.  Whether the signer may speak for the
// site is for the caller to judge.  InvalidArgument: broken; DeadlineExceeded: expired;
// FailedPrecondition: not yet valid, or valid for longer than `longest_life`; else the chain's
// refusal.
inline constexpr std::chrono::seconds kTokenClockTolerance{60};
absl::StatusOr<VerifiedToken> VerifyJobToken(std::string_view text, const TrustStore& trust,
                                             Time now, std::chrono::seconds longest_life,
                                             std::chrono::seconds tolerance = kTokenClockTolerance);

}  // namespace sekisho::identity
