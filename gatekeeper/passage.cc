// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/passage.h"

#include "common/identity/dn.h"
#include "common/identity/signed_request.h"
#include "proto/job.pb.h"

namespace sekisho::gatekeeper {
namespace {

using std::chrono::seconds;

// A passage's, as clients make them, and a day: so long who has an expired proxy's key can date one back, which opens
// nothing but Part.
constexpr std::chrono::hours kSignedWithin{8 * 24};

identity::Time TimeOf(int64_t ms) { return identity::Time(seconds(ms / 1000)); }

bool HasEnded(const identity::Refusal& refusal) {
  return refusal.reason == identity::Reason::kProxyExpired || refusal.reason == identity::Reason::kCertificateExpired;
}

// A world may wait and run for longer than its user's credential lives: what he signed with it before holds.
identity::Verdict JudgeSigner(const identity::SignedRequest& request, identity::Time signed_at,
                              identity::JudgedChains& signers, identity::Time now) {
  identity::Verdict verdict = identity::JudgeRequest(request, signers, now);
  const identity::Refusal* refusal = std::get_if<identity::Refusal>(&verdict);
  return refusal != nullptr && HasEnded(*refusal) && signed_at < now && now < signed_at + kSignedWithin
             ? identity::JudgeRequest(request, signers, now, signed_at)
             : verdict;
}

}  // namespace

absl::StatusOr<identity::Identity> JudgePassage(const std::string& passage, const std::string& own_subject,
                                                identity::JudgedChains& signers, identity::Time now) {
  proto::SignedRequest request;
  proto::RequestBody body;
  if (!request.ParseFromString(passage) || !body.ParseFromString(request.body()) || !body.has_passage()) {
    return absl::InvalidArgumentError("the passage cannot be read");
  }
  const identity::Time signed_at = TimeOf(body.time_ms());
  identity::Verdict verdict = JudgeSigner(
      {request.body(), request.signature(), {request.chain().begin(), request.chain().end()}}, signed_at, signers, now);
  if (const identity::Refusal* refusal = std::get_if<identity::Refusal>(&verdict)) {
    return identity::ToStatus(*refusal);
  }
  if (identity::NormalizeDn(body.gatekeeper_subject()) != identity::NormalizeDn(own_subject)) {
    return absl::PermissionDeniedError("the passage is for gatekeeper " + body.gatekeeper_subject());
  }
  if (TimeOf(body.passage().until_ms()) < now) {
    return absl::PermissionDeniedError("the passage has expired");
  }
  return std::get<identity::Identity>(std::move(verdict));
}

}  // namespace sekisho::gatekeeper
