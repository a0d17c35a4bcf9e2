// SPDX-License-Identifier: Apache-2.0
// A job's public key on its way out to its user, with the word of the queue server that made it: machines between the
// two could put their own in its place.  docs/protocol/2-identity.md, "Delegation".
#pragma once

#include <string>

#include "common/identity/credential.h"
#include "common/identity/trust_store.h"

namespace sekisho::identity {

inline constexpr std::chrono::minutes kOfferLife{10};

struct Offer {
  std::string request;    // PKCS#10, DER
  std::string signature;  // over "sekisho-delegation-v1" NUL job id NUL `made` in Unix seconds NUL request
  Chain chain;            // of who says so
  Time made{};
};

absl::StatusOr<Offer> MakeOffer(const std::string& job_id, const std::string& request_der, const Credential& host,
                                Time now);

// PermissionDenied unless it is of this job, of the host whose subject is `speaker`, and not older than kOfferLife, give or
// take what clocks may differ: the private half of an old key may have become known, and whoever keeps its offer wants it
// signed again.
absl::Status CheckOffer(const Offer& offer, const std::string& job_id, const std::string& speaker,
                        const TrustStore& trust, Time now);

}  // namespace sekisho::identity
