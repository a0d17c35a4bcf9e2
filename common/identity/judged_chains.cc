// SPDX-License-Identifier: Apache-2.0
#include "common/identity/judged_chains.h"

#include <algorithm>

#include "common/refusal.h"

namespace sekisho::identity {

std::variant<const JudgedChains::Judged*, Refusal> JudgedChains::Judge(
    const std::string& presented, const std::function<absl::StatusOr<Chain>()>& parse, Time now) {
  const std::string fingerprint = Sha256Hex(presented);
  if (const auto found = remembered_.find(fingerprint); found != remembered_.end()) {
    if (now >= found->second.from && now < found->second.until) {
      return &found->second.judged;
    }
    remembered_.erase(found);
  }
  const absl::StatusOr<Chain> chain = parse();
  if (!chain.ok()) {
    return Refusal{Reason::kMalformed, Message(chain.status())};
  }
  Verdict verdict = JudgeChain(*chain, *trust_, now, purpose_);
  if (Refusal* refusal = std::get_if<Refusal>(&verdict)) {
    return *std::move(refusal);
  }
  if (remembered_.size() >= kRememberedMax) {
    remembered_.clear();
  }
  Judged judged{std::get<Identity>(std::move(verdict)), Share(X509_get0_pubkey(chain->front().get()))};
  const Time until = std::min({now + kRememberedFor, judged.identity.not_after, trust_->NextCrlEnd(now)});
  return &remembered_.insert_or_assign(fingerprint, Entry{std::move(judged), now, until}).first->second.judged;
}

std::variant<const JudgedChains::Judged*, Refusal> JudgedChains::JudgeThen(
    const std::function<absl::StatusOr<Chain>()>& parse, Time now, Time signed_at) {
  const absl::StatusOr<Chain> chain = parse();
  if (!chain.ok()) {
    return Refusal{Reason::kMalformed, Message(chain.status())};
  }
  Verdict verdict = JudgeChain(*chain, *trust_, now, purpose_, signed_at);
  if (Refusal* refusal = std::get_if<Refusal>(&verdict)) {
    return *std::move(refusal);
  }
  then_ = {std::get<Identity>(std::move(verdict)), Share(X509_get0_pubkey(chain->front().get()))};
  return &then_;
}

void JudgedChains::SetTrust(std::shared_ptr<const TrustStore> trust) {
  trust_ = std::move(trust);
  remembered_.clear();
}

}  // namespace sekisho::identity
