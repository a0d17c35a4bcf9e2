// SPDX-License-Identifier: Apache-2.0
#include "qserver/offers.h"

#include "common/identity/der_chain.h"
#include "common/identity/proxy.h"
#include "qserver/credential_errors.h"

namespace sekisho::qserver {

void Offers::DropOld(identity::Time now) {
  std::erase_if(standing_, [&](const auto& entry) { return entry.second.made + identity::kOfferLife <= now; });
}

absl::StatusOr<proto::DelegationOffer> Offers::For(const std::string& job_id, identity::Time now) {
  DropOld(now);
  if (const auto found = standing_.find(job_id); found != standing_.end()) {
    return found->second.offer;
  }
  ASSIGN_OR_RETURN(identity::DelegationRequest request, identity::MakeDelegationRequest());
  ASSIGN_OR_RETURN(const identity::Offer made, identity::MakeOffer(job_id, request.der, host_, now));
  Standing& standing = standing_[job_id];
  standing.key = std::move(request.key);
  standing.made = now;
  standing.offer.set_request(made.request);
  standing.offer.set_signature(made.signature);
  standing.offer.set_made_s(made.made.time_since_epoch().count());
  for (std::string& der : identity::ToDerChain(made.chain)) {
    standing.offer.add_chain(std::move(der));
  }
  return standing.offer;
}

absl::StatusOr<identity::Credential> Offers::Answer(const std::string& job_id,
                                                    const std::vector<std::string>& ders, identity::Time now) {
  DropOld(now);
  const auto found = standing_.find(job_id);
  if (found == standing_.end()) {
    return errors::NoSuchOffer(job_id);
  }
  absl::StatusOr<identity::Chain> chain = identity::ParseDerChain(ders);
  if (!chain.ok()) {
    return errors::BadCredential(chain.status());
  }
  const bool is_empty = chain->empty();
  auto credential =
      is_empty ? absl::InvalidArgumentError("there are none")
               : identity::AcceptDelegation({identity::Share(found->second.key.get()), ""}, *std::move(chain));
  if (!is_empty && !credential.ok()) {
    return errors::NoSuchOffer(job_id);  // of an earlier key: it was signed for what does not stand any more
  }
  return credential.ok() ? std::move(credential) : errors::BadCredential(credential.status());
}

}  // namespace sekisho::qserver
