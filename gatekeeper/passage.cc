// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/passage.h"

#include "common/identity/dn.h"
#include "common/identity/signed_request.h"
#include "proto/job.pb.h"

namespace sekisho::gatekeeper {

absl::StatusOr<identity::Identity> JudgePassage(const std::string& passage, const std::string& own_subject,
                                                identity::JudgedChains& signers, identity::Time now) {
  proto::SignedRequest request;
  proto::RequestBody body;
  if (!request.ParseFromString(passage) || !body.ParseFromString(request.body()) || !body.has_passage()) {
    return absl::InvalidArgumentError("the passage cannot be read");
  }
  ASSIGN_OR_RETURN(const identity::Identity identity,
                   identity::VerifyRequest({request.body(), request.signature(),
                                            {request.chain().begin(), request.chain().end()}},
                                           signers, now));
  if (identity::NormalizeDn(body.gatekeeper_subject()) != identity::NormalizeDn(own_subject)) {
    return absl::PermissionDeniedError("the passage is for gatekeeper " + body.gatekeeper_subject());
  }
  if (identity::Time(std::chrono::seconds(body.passage().until_ms() / 1000)) < now) {
    return absl::PermissionDeniedError("the passage has expired");
  }
  return identity;
}

}  // namespace sekisho::gatekeeper
