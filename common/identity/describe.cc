// SPDX-License-Identifier: Apache-2.0
#include "common/identity/describe.h"

#include <algorithm>
#include <optional>

#include "common/identity/dn.h"
#include "common/identity/path.h"
#include "common/identity/proxy_info.h"

namespace sekisho::identity {
namespace {

// Of a proxy that keeps the rules, as far as the certificate above it was given.
std::optional<CredentialKind> KindOf(const Chain& chain, size_t at) {
  if (at + 1 >= chain.size()) {
    return std::nullopt;
  }
  Refusal ignored;
  const std::optional<ProxyInfo> info = JudgeProxy(*chain[at], *chain[at + 1], ignored);
  if (!info.has_value()) {
    return std::nullopt;
  }
  return info->kind;
}

std::string TypeOf(const X509& leaf, std::optional<CredentialKind> kind) {
  switch (RoleOf(leaf)) {
    case Role::kAuthority:
      return "certification authority";
    case Role::kEndEntity:
      return Describe(CredentialKind::kEndEntity);
    case Role::kProxy:
      break;
  }
  if (HasDraftProxyInfo(leaf)) {
    return "proxy of the draft before RFC 3820 (not accepted)";
  }
  if (!HasProxyInfo(leaf)) {
    return "legacy globus proxy (not accepted)";
  }
  return kind.has_value() ? Describe(*kind) : "proxy that breaks RFC 3820 (not accepted)";
}

}  // namespace

Description DescribeChain(const Chain& chain) {
  CHECK(!chain.empty());
  const X509& leaf = *chain.front();
  Description description;
  description.subject = SubjectText(leaf);
  description.issuer = IssuerText(leaf);
  description.identity = description.subject;
  description.is_proxy = RoleOf(leaf) == Role::kProxy;
  const EVP_PKEY* key = X509_get0_pubkey(&leaf);  // nullptr: of a kind that OpenSSL does not know
  const bool is_curve = key != nullptr && EVP_PKEY_get_base_id(key) == EVP_PKEY_EC;
  description.strength_bits = key != nullptr ? EVP_PKEY_get_bits(key) : 0;
  // NIST SP 800-57 part 1, table 2; between its rows, and above them, RSA is as strong as it is long.
  description.strength_rsa_bits = !is_curve                            ? description.strength_bits
                                  : description.strength_bits >= 384 ? 7680
                                  : description.strength_bits >= 256 ? 3072
                                                                     : 2048;
  description.not_after = NotAfter(leaf);

  bool speaks_for_signer = true;
  for (size_t i = 0; i < chain.size(); ++i) {
    description.not_after = std::min(description.not_after, NotAfter(*chain[i]));
    if (RoleOf(*chain[i]) != Role::kProxy) {
      continue;
    }
    const std::optional<CredentialKind> kind = KindOf(chain, i);
    speaks_for_signer = speaks_for_signer && kind != CredentialKind::kIndependentProxy;
    if (speaks_for_signer) {
      description.identity = IssuerText(*chain[i]);
    }
    description.is_limited = description.is_limited || kind == CredentialKind::kLimitedProxy;
  }
  description.type = TypeOf(leaf, KindOf(chain, 0));
  return description;
}

}  // namespace sekisho::identity
