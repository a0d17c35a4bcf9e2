// SPDX-License-Identifier: Apache-2.0
#include "common/identity/delegation.h"

#include <fmt/format.h>

#include "common/identity/chain.h"
#include "common/identity/dn.h"
#include "common/identity/signature.h"

namespace sekisho::identity {
namespace {

constexpr std::string_view kLabel("sekisho-delegation-v1\0", 22);

std::string WordsOf(const std::string& job_id, const std::string& request_der) {
  return job_id + '\0' + request_der;
}

}  // namespace

absl::StatusOr<Offer> MakeOffer(const std::string& job_id, const std::string& request_der, const Credential& host) {
  Offer offer;
  offer.request = request_der;
  ASSIGN_OR_RETURN(offer.signature, SignWords(kLabel, WordsOf(job_id, request_der), host));
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
  if (!CanSignWords(key) || !SignatureIsValid(kLabel, WordsOf(job_id, offer.request), offer.signature, key)) {
    return absl::PermissionDeniedError(fmt::format("{} has not signed this key for job {}", speaker, job_id));
  }
  return absl::OkStatus();
}

}  // namespace sekisho::identity
