// SPDX-License-Identifier: Apache-2.0
// ProxyCertInfo (RFC 3820) and what a certificate tells of being a proxy.  Pure.
#pragma once

#include <optional>
#include <string>

#include "common/identity/identity.h"
#include "common/identity/openssl.h"
#include "common/identity/refusal.h"

namespace sekisho::identity {

inline constexpr char kLanguageInheritAll[] = "1.3.6.1.5.5.7.21.1";
inline constexpr char kLanguageIndependent[] = "1.3.6.1.5.5.7.21.2";
inline constexpr char kLanguageLimited[] = "1.3.6.1.4.1.3536.1.1.1.9";
inline constexpr char kDraftProxyInfo[] = "1.3.6.1.4.1.3536.1.222";

bool HasProxyInfo(const X509& certificate);
bool HasDraftProxyInfo(const X509& certificate);

// GT2: no extension, the issuer's name and CN=proxy or CN=limited proxy.
bool IsLegacyProxy(const X509& certificate);

// Is the subject the issuer's name and exactly one more RDN, of one CN?
bool DerivesFromIssuer(const X509& certificate);

struct ProxyInfo {
  CredentialKind kind = CredentialKind::kFullProxy;
  std::optional<long> path_length;
};

// All that RFC 3820 asks of one proxy and its signer alone; what depends on the place in the chain
// (path length, limited inheritance) is judged by chain.h.  A refusal goes into `refusal`.
std::optional<ProxyInfo> JudgeProxy(const X509& proxy, const X509& signer, Refusal& refusal);

}  // namespace sekisho::identity
