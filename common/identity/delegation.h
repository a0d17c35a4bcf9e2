// SPDX-License-Identifier: Apache-2.0
// A job's public key on its way out to its user, with the word of the queue server that made it: machines between the
// two could put their own in its place.  docs/protocol/2-identity.md, "Delegation".
#pragma once

#include <string>

#include "common/identity/credential.h"
#include "common/identity/trust_store.h"

namespace sekisho::identity {

struct Offer {
  std::string request;    // PKCS#10, DER
  std::string signature;  // over "sekisho-delegation-v1" NUL job id NUL request
  Chain chain;            // of who says so
};

absl::StatusOr<Offer> MakeOffer(const std::string& job_id, const std::string& request_der, const Credential& host);

// PermissionDenied unless it is of this job, and of the host whose subject is `speaker`.
absl::Status CheckOffer(const Offer& offer, const std::string& job_id, const std::string& speaker,
                        const TrustStore& trust, Time now);

}  // namespace sekisho::identity
