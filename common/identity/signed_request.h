// SPDX-License-Identifier: Apache-2.0
// A request that carries its user's signature through machines that are not trusted with it:
// docs/protocol/2-identity.md.  Pure.
//
// The signature is over the body's bytes as they travel; nobody encodes them a second time.  What
// the body says (site, request id, time) is its reader's business: freshness.h judges it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/identity/credential.h"
#include "common/identity/judged_chains.h"

namespace sekisho::identity {

inline constexpr size_t kBodyBytesMax = 1024 * 1024;
inline constexpr size_t kSignatureBytesMax = 1024;  // RSA of 8192 bits

struct SignedRequest {
  std::string body;
  std::string signature;  // RSA (PKCS#1) or ECDSA, SHA-256, over the label, a NUL, the body
  std::vector<std::string> chain;  // DER, the signer's leaf first
};

// InvalidArgument if the body is too large or the key is of another type.
absl::StatusOr<SignedRequest> Sign(std::string_view body, const Credential& credential);

// Who signed: chain first, then the signature.
// `signed_at`: the chain must have been good then (JudgeChain).
Verdict JudgeRequest(const SignedRequest& request, JudgedChains& chains, Time now,
                     std::optional<Time> signed_at = std::nullopt);
absl::StatusOr<Identity> VerifyRequest(const SignedRequest& request, JudgedChains& chains, Time now);

}  // namespace sekisho::identity
