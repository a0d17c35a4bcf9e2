// SPDX-License-Identifier: Apache-2.0
#include "client/world/signed_part.h"

#include <fmt/format.h>

#include "common/refusal.h"

namespace sekisho::client {

absl::StatusOr<proto::RequestBody> JudgeSignedPart(const proto::SignedRequest& shown, const std::string& world, int part,
                                                   const std::string& subject, identity::JudgedChains& signers,
                                                   identity::Time now) {
  const auto refuse = [&](const std::string& why) {
    return Refuse(absl::StatusCode::kDataLoss, 0,
                  fmt::format("part {} of {}, as its leader shows it, is not what you have signed: {}", part, world, why),
                  "begin the program anew at other sites, and tell the administrator of the leader's site");
  };
  const identity::SignedRequest request = {shown.body(), shown.signature(), {shown.chain().begin(), shown.chain().end()}};
  const auto signer = identity::VerifyRequest(request, signers, now);
  if (!signer.ok()) {
    return refuse(Message(signer.status()));
  }
  if (signer->subject != subject) {
    return refuse(fmt::format("it is signed by {}", signer->subject));
  }
  proto::RequestBody body;
  if (!body.ParseFromString(shown.body()) || !body.submit().has_charter()) {
    return refuse("it is no part's submission");
  }
  const proto::Charter& charter = body.submit().charter();
  if (charter.world() != world || charter.part() != part) {
    return refuse(fmt::format("it is part {} of {}", charter.part(), charter.world()));
  }
  return body;
}

}  // namespace sekisho::client
