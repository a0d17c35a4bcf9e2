// SPDX-License-Identifier: Apache-2.0
// What a user signs, as it travels.
#pragma once

#include "common/identity/signed_request.h"
#include "proto/job.pb.h"

namespace sekisho::test {

inline proto::SignedRequest Signed(const proto::RequestBody& body, const identity::Credential& signer) {
  const identity::SignedRequest made = *identity::Sign(body.SerializeAsString(), signer);
  proto::SignedRequest request;
  request.set_body(made.body);
  request.set_signature(made.signature);
  request.mutable_chain()->Assign(made.chain.begin(), made.chain.end());
  return request;
}

}  // namespace sekisho::test
