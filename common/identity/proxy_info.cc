// SPDX-License-Identifier: Apache-2.0
#include "common/identity/proxy_info.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/objects.h>

#include "common/identity/dn.h"
#include "common/identity/path.h"

namespace sekisho::identity {
namespace {

using ProxyInfoPtr =
    std::unique_ptr<PROXY_CERT_INFO_EXTENSION, Deleter<PROXY_CERT_INFO_EXTENSION_free>>;
using ObjectPtr = std::unique_ptr<ASN1_OBJECT, Deleter<ASN1_OBJECT_free>>;

std::string Dotted(const ASN1_OBJECT* object) {
  char text[128] = {};
  OBJ_obj2txt(text, sizeof(text), object, 1);
  return text;
}

// The last RDN's CN if it stands alone in its RDN.
std::optional<std::string> LastCommonName(const X509_NAME& name) {
  const int count = X509_NAME_entry_count(&name);
  if (count == 0) {
    return std::nullopt;
  }
  const X509_NAME_ENTRY* last = X509_NAME_get_entry(&name, count - 1);
  if (OBJ_obj2nid(X509_NAME_ENTRY_get_object(last)) != NID_commonName) {
    return std::nullopt;
  }
  if (count > 1 &&
      X509_NAME_ENTRY_set(X509_NAME_get_entry(&name, count - 2)) == X509_NAME_ENTRY_set(last)) {
    return std::nullopt;
  }
  const ASN1_STRING* data = X509_NAME_ENTRY_get_data(last);
  return std::string(reinterpret_cast<const char*>(ASN1_STRING_get0_data(data)),
                     static_cast<size_t>(ASN1_STRING_length(data)));
}

bool HasExtension(const X509& certificate, int nid) {
  return X509_get_ext_by_NID(&certificate, nid, -1) >= 0;
}

bool SaysAuthority(const X509& certificate) {
  std::unique_ptr<BASIC_CONSTRAINTS, Deleter<BASIC_CONSTRAINTS_free>> constraints(
      static_cast<BASIC_CONSTRAINTS*>(
          X509_get_ext_d2i(&certificate, NID_basic_constraints, nullptr, nullptr)));
  return constraints != nullptr && constraints->ca != 0;
}

// The policy's own rules; sets `info.kind`.
bool JudgePolicy(const X509& proxy, const PROXY_POLICY& policy, ProxyInfo& info, Refusal& refusal) {
  const std::string language = Dotted(policy.policyLanguage);
  const bool has_octets = policy.policy != nullptr;
  if (language == kLanguageLimited) {
    info.kind = CredentialKind::kLimitedProxy;
  } else if (language == kLanguageInheritAll) {
    info.kind = CredentialKind::kFullProxy;
  } else if (language == kLanguageIndependent) {
    info.kind = CredentialKind::kIndependentProxy;
  } else {
    refusal = {
        Reason::kProxyPolicyLanguage,
        fmt::format("the proxy {} carries a policy in the language {}, which is not known here",
                    SubjectText(proxy), language)};
    return false;
  }
  if (has_octets) {
    refusal = {Reason::kProxyPolicyForbidden,
               fmt::format("the proxy {} carries policy octets, which the language {} forbids",
                           SubjectText(proxy), language)};
    return false;
  }
  return true;
}

std::optional<Refusal> JudgeShape(const X509& proxy, const X509& signer) {
  const std::string subject = SubjectText(proxy);
  const std::string signer_subject = SubjectText(signer);
  if (RoleOf(signer) == Role::kAuthority) {
    return Refusal{Reason::kProxySignedByAuthority,
                   fmt::format("the proxy {} was signed by the authority {}: expected a user's or "
                               "host's certificate, or another proxy",
                               subject, signer_subject)};
  }
  if (HasDraftProxyInfo(proxy)) {
    return Refusal{Reason::kDraftProxy,
                   fmt::format("{} is a proxy of the draft before RFC 3820", subject)};
  }
  if (!HasProxyInfo(proxy)) {
    return Refusal{Reason::kLegacyProxy, fmt::format("{} is a legacy (GT2) proxy", subject)};
  }
  if (!DerivesFromIssuer(proxy)) {
    return Refusal{Reason::kProxySubject,
                   fmt::format("the proxy's subject {} is not its signer's name {} and one CN",
                               subject, signer_subject)};
  }
  if (SaysAuthority(proxy)) {
    return Refusal{Reason::kProxyIsAuthority, fmt::format("the proxy {} says cA:TRUE", subject)};
  }
  if (HasExtension(proxy, NID_subject_alt_name) || HasExtension(proxy, NID_issuer_alt_name)) {
    return Refusal{
        Reason::kProxyAlternativeName,
        fmt::format("the proxy {} has an alternative name, which RFC 3820 forbids", subject)};
  }
  if (HasExtension(signer, NID_key_usage) &&
      (X509_get_key_usage(const_cast<X509*>(&signer)) & KU_DIGITAL_SIGNATURE) == 0) {
    return Refusal{
        Reason::kSignerMayNotSign,
        fmt::format("{} signed the proxy {} although its keyUsage lacks digitalSignature",
                    signer_subject, subject)};
  }
  return std::nullopt;
}

}  // namespace

std::string Describe(CredentialKind kind) {
  switch (kind) {
    case CredentialKind::kEndEntity:
      return "end entity credential";
    case CredentialKind::kFullProxy:
      return "RFC 3820 compliant impersonation proxy";
    case CredentialKind::kLimitedProxy:
      return "RFC 3820 compliant limited proxy";
    case CredentialKind::kIndependentProxy:
      return "RFC 3820 compliant independent proxy";
  }
  return "unknown";
}

bool HasProxyInfo(const X509& certificate) { return HasExtension(certificate, NID_proxyCertInfo); }

bool HasDraftProxyInfo(const X509& certificate) {
  const ObjectPtr oid(OBJ_txt2obj(kDraftProxyInfo, 1));
  return X509_get_ext_by_OBJ(&certificate, oid.get(), -1) >= 0;
}

bool IsLegacyProxy(const X509& certificate) {
  const std::optional<std::string> name = LastCommonName(*X509_get_subject_name(&certificate));
  return (name == "proxy" || name == "limited proxy") && DerivesFromIssuer(certificate);
}

bool DerivesFromIssuer(const X509& certificate) {
  const X509_NAME* subject = X509_get_subject_name(&certificate);
  if (!LastCommonName(*subject).has_value()) {
    return false;
  }
  NamePtr shorter(X509_NAME_dup(subject));
  X509_NAME_ENTRY_free(
      X509_NAME_delete_entry(shorter.get(), X509_NAME_entry_count(shorter.get()) - 1));
  return X509_NAME_cmp(shorter.get(), X509_get_issuer_name(&certificate)) == 0;
}

std::optional<ProxyInfo> JudgeProxy(const X509& proxy, const X509& signer, Refusal& refusal) {
  if (std::optional<Refusal> shape = JudgeShape(proxy, signer)) {
    refusal = *std::move(shape);
    return std::nullopt;
  }
  int critical = -1;
  const ProxyInfoPtr extension(static_cast<PROXY_CERT_INFO_EXTENSION*>(
      X509_get_ext_d2i(&proxy, NID_proxyCertInfo, &critical, nullptr)));
  ERR_clear_error();
  if (extension == nullptr || extension->proxyPolicy == nullptr) {
    refusal = {Reason::kProxyInfoMalformed,
               fmt::format("the ProxyCertInfo of {} cannot be read, or is there twice",
                           SubjectText(proxy))};
    return std::nullopt;
  }
  if (critical != 1) {
    refusal = {Reason::kProxyInfoNotCritical,
               fmt::format("the ProxyCertInfo of {} is not critical", SubjectText(proxy))};
    return std::nullopt;
  }
  ProxyInfo info;
  if (!JudgePolicy(proxy, *extension->proxyPolicy, info, refusal)) {
    return std::nullopt;
  }
  if (extension->pcPathLengthConstraint != nullptr) {
    int64_t length = -1;
    if (ASN1_INTEGER_get_int64(&length, extension->pcPathLengthConstraint) != 1 || length < 0) {
      refusal = {Reason::kProxyInfoMalformed,
                 fmt::format("the path length of {} is not a small number", SubjectText(proxy))};
      return std::nullopt;
    }
    info.path_length = length;
  }
  return info;
}

}  // namespace sekisho::identity
