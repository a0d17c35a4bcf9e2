// SPDX-License-Identifier: Apache-2.0
#include "common/identity/refusal.h"

#include <fmt/format.h>

namespace sekisho::identity {
namespace {

struct Entry {
  Reason reason;
  std::string_view name;
  std::string_view remedy;
};

constexpr std::string_view kNewProxy = "make a new proxy: sekisho proxy init";
constexpr std::string_view kAskAuthority =
    "ask the certification authority for a valid certificate";
constexpr std::string_view kTrustDirectory =
    "install the authority's certificate in the trust directory (X509_CERT_DIR)";
constexpr std::string_view kFetchCrl = "fetch current revocation lists (fetch-crl)";
constexpr std::string_view kClock = "compare the clocks of both machines";
constexpr std::string_view kResend = "send the request again with a new id and time";

constexpr Entry kEntries[] = {
    {Reason::kEmptyChain, "empty-chain", "present a certificate: sekisho proxy init"},
    {Reason::kChainTooLong, "chain-too-long", "use a proxy with fewer levels"},
    {Reason::kMalformed, "malformed", kNewProxy},
    {Reason::kSelfSigned, "self-signed", kAskAuthority},
    {Reason::kUnknownIssuer, "unknown-issuer", kTrustDirectory},
    {Reason::kIncompleteChain, "incomplete-chain",
     "send every certificate from the proxy up to the user's own"},
    {Reason::kIssuerName, "issuer-name", kNewProxy},
    {Reason::kBadSignature, "bad-signature", kNewProxy},
    {Reason::kOtherAuthorityOfSameName, "other-authority-of-same-name", kTrustDirectory},
    {Reason::kSurplusCertificates, "surplus-certificates",
     "send only the chain of the certificate that holds the key"},
    {Reason::kProxyExpired, "proxy-expired", kNewProxy},
    {Reason::kProxyNotYetValid, "proxy-not-yet-valid", kClock},
    {Reason::kCertificateExpired, "certificate-expired", kAskAuthority},
    {Reason::kCertificateNotYetValid, "certificate-not-yet-valid", kClock},
    {Reason::kAuthorityExpired, "authority-expired",
     "install the authority's new certificate in the trust directory"},
    {Reason::kAuthorityNotYetValid, "authority-not-yet-valid", kClock},
    {Reason::kNotAnAuthority, "not-an-authority", kAskAuthority},
    {Reason::kAuthorityPathLength, "authority-path-length", kAskAuthority},
    {Reason::kAuthorityAsLeaf, "authority-as-leaf",
     "use a user's or host's certificate, never the authority's own"},
    {Reason::kNameConstraints, "name-constraints", kAskAuthority},
    {Reason::kSigningPolicy, "signing-policy", kAskAuthority},
    {Reason::kSigningPolicyUnreadable, "signing-policy-unreadable",
     "mend the authority's .signing_policy file in the trust directory"},
    {Reason::kRevoked, "revoked", kAskAuthority},
    {Reason::kAuthorityRevoked, "authority-revoked", kAskAuthority},
    {Reason::kCrlExpired, "crl-expired", kFetchCrl},
    {Reason::kCrlNotYetValid, "crl-not-yet-valid", kClock},
    {Reason::kCrlBadSignature, "crl-bad-signature", kFetchCrl},
    {Reason::kCrlUnusable, "crl-unusable", kFetchCrl},
    {Reason::kProxySignedByAuthority, "proxy-signed-by-authority", kNewProxy},
    {Reason::kProxySubject, "proxy-subject", kNewProxy},
    {Reason::kProxyIsAuthority, "proxy-is-authority", kNewProxy},
    {Reason::kProxyAlternativeName, "proxy-alternative-name", kNewProxy},
    {Reason::kProxyInfoNotCritical, "proxy-info-not-critical", kNewProxy},
    {Reason::kProxyInfoMalformed, "proxy-info-malformed", kNewProxy},
    {Reason::kProxyPolicyLanguage, "proxy-policy-language",
     "use a full, limited or independent proxy"},
    {Reason::kProxyPolicyForbidden, "proxy-policy-forbidden", kNewProxy},
    {Reason::kProxyPathLength, "proxy-path-length",
     "allow longer chains: sekisho proxy init --path-length N"},
    {Reason::kLegacyProxy, "legacy-proxy",
     "make an RFC 3820 proxy: sekisho proxy init, or grid-proxy-init -rfc"},
    {Reason::kDraftProxy, "draft-proxy",
     "make an RFC 3820 proxy: sekisho proxy init, or grid-proxy-init -rfc"},
    {Reason::kSignerMayNotSign, "signer-may-not-sign",
     "get a certificate whose keyUsage has digitalSignature"},
    {Reason::kWeakKey, "weak-key", "use an RSA key of 2048 bits or more, or an elliptic curve"},
    {Reason::kKeyTooLarge, "key-too-large", "use an RSA key of at most 8192 bits"},
    {Reason::kWeakDigest, "weak-digest", "use SHA-256 or stronger for signatures"},
    {Reason::kWrongPurpose, "wrong-purpose",
     "get a certificate whose extendedKeyUsage allows this use"},
    {Reason::kUnknownCriticalExtension, "unknown-critical-extension", kAskAuthority},
    {Reason::kOtherwiseInvalid, "otherwise-invalid", kAskAuthority},
    {Reason::kWrongHost, "wrong-host",
     "dial the name in the host's certificate, or give the subject in the contact"},
    {Reason::kWrongSubject, "wrong-subject", "correct the subject in the contact"},
    {Reason::kLimitedProxy, "limited-proxy", "make a full proxy: sekisho proxy init"},
    {Reason::kRequestSignature, "request-signature", kResend},
    {Reason::kRequestKeyType, "request-key-type", "use an RSA or elliptic-curve key"},
    {Reason::kRequestTooLarge, "request-too-large", "send a smaller request"},
    {Reason::kRequestTooOld, "request-too-old", kClock},
    {Reason::kRequestFromTheFuture, "request-from-the-future", kClock},
    {Reason::kRequestReplayed, "request-replayed", kResend},
    {Reason::kTooManyRequests, "too-many-requests", "try again in some minutes"},
};

const Entry& Find(Reason reason) {
  for (const Entry& entry : kEntries) {
    if (entry.reason == reason) {
      return entry;
    }
  }
  CHECK(false && "every reason has an entry");
  return kEntries[0];
}

}  // namespace

std::vector<Reason> AllReasons() {
  std::vector<Reason> reasons;
  for (const Entry& entry : kEntries) {
    reasons.push_back(entry.reason);
  }
  return reasons;
}

std::string_view Name(Reason reason) { return Find(reason).name; }
std::string_view Remedy(Reason reason) { return Find(reason).remedy; }

absl::Status ToStatus(const Refusal& refusal) {
  const std::string text =
      fmt::format("[{}] {} ({})", Name(refusal.reason), refusal.message, Remedy(refusal.reason));
  if (refusal.reason == Reason::kLimitedProxy) {
    return absl::PermissionDeniedError(text);
  }
  return absl::UnauthenticatedError(text);
}

}  // namespace sekisho::identity
