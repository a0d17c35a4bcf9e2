// SPDX-License-Identifier: Apache-2.0
#include "common/identity/delegation.h"

#include <fmt/format.h>

#include "common/identity/chain.h"
#include "common/identity/dn.h"
#include "common/identity/signature.h"

namespace sekisho::identity {
namespace {

constexpr std::string_view kLabel("sekisho-delegation-v1\0", 22);

constexpr std::chrono::minutes kClocksDiffer{5};

std::string WordsOf(const std::string& job_id, Time made, const std::string& request_der) {
  return fmt::format("{}{}{}{}{}", job_id, '\0', made.time_since_epoch().count(), '\0', request_der);
}

}  // namespace

absl::StatusOr<Offer> MakeOffer(const std::string& job_id, const std::string& request_der, const Credential& host,
                                Time now) {
  Offer offer;
  offer.request = request_der;
  offer.made = now;
  ASSIGN_OR_RETURN(offer.signature, SignWords(kLabel, WordsOf(job_id, now, request_der), host));
  offer.chain = Share(host.chain);
  return offer;
}

absl::Status CheckOffer(const Offer& offer, const std::string& job_id, const std::string& speaker,
                        const TrustStore& trust, Time now) {
  ASSIGN_OR_RETURN(const Identity said_by, VerifyChain(offer.chain, trust, now));
  const bool is_speaker =
      said_by.kind == CredentialKind::kEndEntity && NormalizeDn(said_by.subject) == NormalizeDn(speaker);
  if (!is_speaker) {
    return absl::PermissionDeniedError(
        fmt::format("expected the word of {}, saw that of {}", speaker, said_by.leaf_subject));
  }
  EVP_PKEY* const key = X509_get0_pubkey(offer.chain.front().get());
  if (!CanSignWords(key) || !SignatureIsValid(kLabel, WordsOf(job_id, offer.made, offer.request), offer.signature, key)) {
    return absl::PermissionDeniedError(fmt::format("{} has not signed this key for job {}", speaker, job_id));
  }
  if (offer.made + kOfferLife + kClocksDiffer < now || offer.made > now + kClocksDiffer) {
    return absl::PermissionDeniedError(fmt::format("this key was offered at {}, not now", FormatTime(offer.made)));
  }
  return absl::OkStatus();
}

}  // namespace sekisho::identity
