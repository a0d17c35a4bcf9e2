// SPDX-License-Identifier: Apache-2.0
// Making RFC 3820 proxies, in one step or split for delegation: docs/protocol/2-identity.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/identity/credential.h"
#include "common/identity/identity.h"

namespace sekisho::identity {

struct ProxyOptions {
  CredentialKind kind = CredentialKind::kFullProxy;  // kEndEntity is refused
  std::optional<long> path_length;  // how many proxies may follow; none: any number
  std::chrono::seconds life = std::chrono::hours(12);
  std::string name;  // its common name; empty: a number made of the key
  int bits = 0;  // of an RSA key; 0: an elliptic-curve key, P-256, which signs in a tenth of the time
};

// A new key with a proxy of `issuer` for it.  The proxy begins 5 minutes ago, for clocks that
// differ, and never outlives its issuer.  Below a limited proxy it is limited too.
// FailedPrecondition if the issuer may not sign (path length 0, keyUsage, expired, authority).
absl::StatusOr<Credential> CreateProxy(const Credential& issuer, const ProxyOptions& options,
                                       Time now);

// A proxy's policy in a language that is not one of `kind`'s: for readers that know it alone (RFC 3820, 3.8.2).
// Nobody else takes such a proxy for anything.
struct ProxyPolicy {
  std::string language;  // an OID, dotted
  std::string text;
};

// `issuer`'s proxy for a key that is there already, in PEM.  Its chain, which is to follow, is the caller's to write
// down: many keys have the same.
absl::StatusOr<std::string> CertifyKey(const Credential& issuer, EVP_PKEY* key, const ProxyPolicy& policy,
                                       std::chrono::seconds life, Time now);

// Delegation, receiver: a key pair that stays, and the request (PKCS#10, DER) that goes out.
struct DelegationRequest {
  KeyPtr key;
  std::string der;
};
absl::StatusOr<DelegationRequest> MakeDelegationRequest(int bits = 0);

// Delegation, signer: the new proxy and the chain below it; InvalidArgument unless the request is
// well formed and signed by its own key.  The request's name and extensions are not looked at.
absl::StatusOr<Chain> AnswerDelegation(const Credential& issuer, std::string_view request_der,
                                       const ProxyOptions& options, Time now);

// Delegation, receiver: key and answer together.  InvalidArgument if they do not belong together.
absl::StatusOr<Credential> AcceptDelegation(DelegationRequest request, Chain answer);

// The text of a proxy file: certificate, key (unencrypted; RSA in its traditional form, as older tools want
// it, others as PKCS#8, the one form of theirs that GCT reads), rest of the chain.
std::string ProxyFileText(const Credential& credential);

// Mode 0600, atomically; a symbolic link is replaced, not followed.
absl::Status WriteProxyFile(const Credential& credential, const std::string& path);

}  // namespace sekisho::identity
