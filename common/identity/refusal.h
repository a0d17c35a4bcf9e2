// SPDX-License-Identifier: Apache-2.0
// Why a credential is refused: one reason each, with what the user can do:
// docs/protocol/2-identity.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sekisho::identity {

enum class Reason {
  // The chain as a whole.
  kEmptyChain,
  kChainTooLong,
  kMalformed,
  kSelfSigned,
  kUnknownIssuer,
  kIncompleteChain,
  kBadSignature,
  kIssuerName,
  kOtherAuthorityOfSameName,
  kSurplusCertificates,
  // Time, by level.
  kProxyExpired,
  kProxyNotYetValid,
  kCertificateExpired,
  kCertificateNotYetValid,
  kAuthorityExpired,
  kAuthorityNotYetValid,
  // Authorities.
  kNotAnAuthority,
  kAuthorityPathLength,
  kAuthorityAsLeaf,
  kNameConstraints,
  kSigningPolicy,
  kSigningPolicyUnreadable,
  kRevoked,
  kAuthorityRevoked,
  kCrlExpired,
  kCrlNotYetValid,
  kCrlBadSignature,
  kCrlUnusable,
  // Proxies.
  kProxySignedByAuthority,
  kProxySubject,
  kProxyIsAuthority,
  kProxyAlternativeName,
  kProxyInfoNotCritical,
  kProxyInfoMalformed,
  kProxyPolicyLanguage,
  kProxyPolicyForbidden,
  kProxyPathLength,
  kLegacyProxy,
  kDraftProxy,
  kSignerMayNotSign,
  // Strength, purpose, extensions.
  kWeakKey,
  kKeyTooLarge,
  kWeakDigest,
  kWrongPurpose,
  kUnknownCriticalExtension,
  kOtherwiseInvalid,
  // The peer is genuine, but not the one that was asked for.
  kWrongHost,
  kWrongSubject,
  // Use.
  kLimitedProxy,
  // Signed requests.
  kRequestSignature,
  kRequestKeyType,
  kRequestTooLarge,
  kRequestTooOld,
  kRequestFromTheFuture,
  kRequestReplayed,
  kTooManyRequests,
};

// All of them.
std::vector<Reason> AllReasons();

// "proxy-expired": stable, for logs and scripts.
std::string_view Name(Reason reason);

// What the user, or his administrator, can do.
std::string_view Remedy(Reason reason);

struct Refusal {
  Reason reason = Reason::kMalformed;
  std::string message;  // what was expected and what was seen
};

// Unauthenticated (PermissionDenied for kLimitedProxy), "[proxy-expired] message (remedy)".
absl::Status ToStatus(const Refusal& refusal);

}  // namespace sekisho::identity
