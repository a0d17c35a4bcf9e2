// SPDX-License-Identifier: Apache-2.0
#include "common/identity/path.h"

#include <algorithm>

#include <fmt/format.h>
#include <openssl/err.h>

#include "common/identity/dn.h"
#include "common/identity/proxy_info.h"

namespace sekisho::identity {
namespace {

bool IsSelfIssued(const X509& certificate) {
  return X509_NAME_cmp(X509_get_subject_name(&certificate), X509_get_issuer_name(&certificate)) ==
         0;
}

bool IsSignedBy(const X509& certificate, const X509& issuer) {
  EVP_PKEY* key = X509_get0_pubkey(&issuer);
  const bool valid = key != nullptr && X509_verify(const_cast<X509*>(&certificate), key) == 1;
  ERR_clear_error();
  return valid;
}

bool IsNamedIssuer(const X509& certificate, const X509& issuer) {
  return X509_NAME_cmp(X509_get_issuer_name(&certificate), X509_get_subject_name(&issuer)) == 0;
}

// The step up from `certificate`: the presented certificate that issued it, or null.
const X509Ptr* FindPresented(const X509& certificate, const Chain& presented,
                             std::vector<bool>& used, bool* name_matched) {
  for (size_t i = 1; i < presented.size(); ++i) {
    if (used[i] || !IsNamedIssuer(certificate, *presented[i])) {
      continue;
    }
    *name_matched = true;
    if (IsSignedBy(certificate, *presented[i])) {
      used[i] = true;
      return &presented[i];
    }
  }
  return nullptr;
}

const Authority* FindTrusted(const X509& certificate, const TrustStore& trust, bool* name_matched) {
  const Authorities* authorities = trust.Find(*X509_get_issuer_name(&certificate));
  if (authorities == nullptr) {
    return nullptr;
  }
  for (const Authority& authority : authorities->certificates) {
    *name_matched = true;
    if (IsSignedBy(certificate, *authority.certificate)) {
      return &authority;
    }
  }
  return nullptr;
}

Refusal NoIssuer(const X509& certificate, bool presented_name, bool trusted_name,
                 const Chain& presented, const TrustStore& trust) {
  const std::string subject = SubjectText(certificate);
  const std::string issuer = IssuerText(certificate);
  if (trusted_name) {
    return {Reason::kOtherAuthorityOfSameName,
            fmt::format("{} was not signed by the authority {} of {}: another key, the same name",
                        subject, issuer, trust.directory())};
  }
  if (presented_name) {
    return {Reason::kBadSignature,
            fmt::format("the signature on {} does not verify with the key of {}", subject, issuer)};
  }
  if (IsSelfIssued(certificate)) {
    return {Reason::kSelfSigned,
            fmt::format("{} is signed by itself and is not among the authorities of {}", subject,
                        trust.directory())};
  }
  for (const X509Ptr& other : presented) {
    if (IsSignedBy(certificate, *other)) {
      return {Reason::kIssuerName, fmt::format("{} names {} as its issuer, but {} signed it",
                                               subject, issuer, SubjectText(*other))};
    }
  }
  if (RoleOf(certificate) == Role::kProxy) {
    return {Reason::kIncompleteChain,
            fmt::format("the certificate of {}, which signed the proxy {}, was not presented",
                        issuer, subject)};
  }
  return {Reason::kUnknownIssuer, fmt::format("{} was issued by {}, which is not in {}", subject,
                                              issuer, trust.directory())};
}

// Is the presented certificate one that the path has anyway, such as the root that a peer sends
// along?
bool IsOnPath(const X509& certificate, const Path& path) {
  return std::any_of(path.certificates.begin(), path.certificates.end(), [&](const X509Ptr& other) {
    return X509_cmp(&certificate, other.get()) == 0;
  });
}

}  // namespace

Role RoleOf(const X509& certificate) {
  if (HasProxyInfo(certificate) || HasDraftProxyInfo(certificate) || IsLegacyProxy(certificate)) {
    return Role::kProxy;
  }
  return X509_check_ca(const_cast<X509*>(&certificate)) > 0 ? Role::kAuthority : Role::kEndEntity;
}

std::variant<Path, Refusal> BuildPath(const Chain& presented, const TrustStore& trust) {
  if (presented.empty()) {
    return Refusal{Reason::kEmptyChain, "no certificate was presented"};
  }
  if (presented.size() > kChainCertificatesMax) {
    return Refusal{Reason::kChainTooLong, fmt::format("{} certificates, more than the {} allowed",
                                                      presented.size(), kChainCertificatesMax)};
  }
  for (const X509Ptr& certificate : presented) {
    const EVP_PKEY* key = X509_get0_pubkey(certificate.get());
    ERR_clear_error();
    if (key == nullptr) {
      return Refusal{Reason::kMalformed,
                     fmt::format("the public key of {} cannot be read", SubjectText(*certificate))};
    }
    if (EVP_PKEY_get_bits(key) > kKeyBitsMax) {
      return Refusal{Reason::kKeyTooLarge,
                     fmt::format("the key of {} has {} bits, more than the {} allowed",
                                 SubjectText(*certificate), EVP_PKEY_get_bits(key), kKeyBitsMax)};
    }
  }
  Path path;
  path.certificates.push_back(Share(presented.front().get()));
  std::vector<bool> used(presented.size());
  while (true) {
    const X509& current = *path.certificates.back();
    if (path.certificates.size() > kChainCertificatesMax) {
      return Refusal{Reason::kChainTooLong,
                     fmt::format("no root within {} certificates", kChainCertificatesMax)};
    }
    // Trusted authorities first: what the directory says outweighs what the peer sends.
    bool trusted_name = false;
    bool presented_name = false;
    if (const Authority* authority = FindTrusted(current, trust, &trusted_name)) {
      if (X509_cmp(authority->certificate.get(), &current) == 0) {
        break;  // the root itself
      }
      path.certificates.push_back(Share(authority->certificate.get()));
      continue;
    }
    const X509Ptr* issuer = FindPresented(current, presented, used, &presented_name);
    if (issuer == nullptr) {
      return NoIssuer(current, presented_name, trusted_name, presented, trust);
    }
    path.certificates.push_back(Share(issuer->get()));
  }
  for (size_t i = 1; i < presented.size(); ++i) {
    if (!used[i] && !IsOnPath(*presented[i], path)) {
      return Refusal{Reason::kSurplusCertificates,
                     fmt::format("{} is not on the way from {} to {}", SubjectText(*presented[i]),
                                 SubjectText(path.leaf()), SubjectText(path.root()))};
    }
  }
  return path;
}

}  // namespace sekisho::identity
