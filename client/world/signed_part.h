// SPDX-License-Identifier: Apache-2.0
// What a user has signed for a part of a world, as the world's leader shows it: the leader's host is believed in nothing
// that the signature does not cover.  docs/protocol/15-mpirun.md, "Held".  Pure.
#pragma once

#include <string>

#include "common/identity/signed_request.h"
#include "proto/job.pb.h"

namespace sekisho::client {

// Its body.  DataLoss: it is not what `subject` has signed for this part of this world.
absl::StatusOr<proto::RequestBody> JudgeSignedPart(const proto::SignedRequest& shown, const std::string& world, int part,
                                                   const std::string& subject, identity::JudgedChains& signers,
                                                   identity::Time now);

}  // namespace sekisho::client
