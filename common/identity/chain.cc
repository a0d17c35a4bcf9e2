// SPDX-License-Identifier: Apache-2.0
#include "common/identity/chain.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include "common/identity/crl.h"
#include "common/identity/dn.h"
#include "common/identity/path.h"
#include "common/identity/proxy_info.h"

namespace sekisho::identity {
namespace {

using StorePtr = std::unique_ptr<X509_STORE, Deleter<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, Deleter<X509_STORE_CTX_free>>;

// A path cut into its three parts: [0, eec) proxies, eec, (eec, end) authorities.
struct Layout {
  size_t eec = 0;
};

std::variant<Layout, Refusal> JudgeRoles(const Path& path) {
  const Chain& certificates = path.certificates;
  Layout layout;
  while (layout.eec < certificates.size() && RoleOf(*certificates[layout.eec]) == Role::kProxy) {
    ++layout.eec;
  }
  if (layout.eec == certificates.size()) {
    return Refusal{Reason::kUnknownIssuer, "the chain holds proxies only"};
  }
  if (layout.eec == 0 && RoleOf(path.leaf()) == Role::kAuthority) {
    return Refusal{Reason::kAuthorityAsLeaf,
                   fmt::format("{} is an authority's certificate", SubjectText(path.leaf()))};
  }
  for (size_t i = layout.eec + 1; i < certificates.size(); ++i) {
    if (RoleOf(*certificates[i]) != Role::kAuthority) {
      return Refusal{Reason::kNotAnAuthority,
                     fmt::format("{} was issued by {}, which is no authority",
                                 SubjectText(*certificates[i - 1]), SubjectText(*certificates[i]))};
    }
  }
  return layout;
}

std::optional<Refusal> JudgeTime(const X509& certificate, Time now, Reason early, Reason late) {
  if (const Time from = NotBefore(certificate); now < from) {
    return Refusal{early, fmt::format("{} is valid from {}, now {}", SubjectText(certificate),
                                      FormatTime(from), FormatTime(now))};
  }
  // In its last second it has ended, as for OpenSSL, which has the last word.
  if (const Time until = NotAfter(certificate); now >= until) {
    return Refusal{late, fmt::format("{} expired at {}, now {}", SubjectText(certificate),
                                     FormatTime(until), FormatTime(now))};
  }
  return std::nullopt;
}

// From the root down, so that the cause is named and not its consequence.
std::optional<Refusal> JudgeTimes(const Path& path, const Layout& layout, Time now) {
  for (size_t i = path.certificates.size(); i-- > 0;) {
    const X509& certificate = *path.certificates[i];
    std::optional<Refusal> refusal;
    if (i > layout.eec) {
      refusal =
          JudgeTime(certificate, now, Reason::kAuthorityNotYetValid, Reason::kAuthorityExpired);
    } else if (i == layout.eec) {
      refusal =
          JudgeTime(certificate, now, Reason::kCertificateNotYetValid, Reason::kCertificateExpired);
    } else {
      refusal = JudgeTime(certificate, now, Reason::kProxyNotYetValid, Reason::kProxyExpired);
    }
    if (refusal.has_value()) {
      return refusal;
    }
  }
  return std::nullopt;
}

// The proxies, from the end entity down; sets what they make of the identity.
std::optional<Refusal> JudgeProxies(const Path& path, const Layout& layout, Identity& identity) {
  for (size_t i = layout.eec; i-- > 0;) {
    const X509& proxy = *path.certificates[i];
    Refusal refusal;
    const std::optional<ProxyInfo> info = JudgeProxy(proxy, *path.certificates[i + 1], refusal);
    if (!info.has_value()) {
      return refusal;
    }
    if (info->path_length.has_value() && static_cast<size_t>(*info->path_length) < i) {
      return Refusal{Reason::kProxyPathLength,
                     fmt::format("the proxy {} allows {} proxies below it, the chain has {}",
                                 SubjectText(proxy), *info->path_length, i)};
    }
    // A full proxy stands for whoever signed it, and is as limited and as independent as he is.
    identity.is_limited = identity.is_limited || info->kind == CredentialKind::kLimitedProxy;
    if (info->kind == CredentialKind::kIndependentProxy) {
      identity.subject = SubjectText(proxy);
      identity.kind = CredentialKind::kIndependentProxy;
    } else if (identity.kind != CredentialKind::kIndependentProxy) {
      identity.kind =
          identity.is_limited ? CredentialKind::kLimitedProxy : CredentialKind::kFullProxy;
    }
  }
  return std::nullopt;
}

// An authority without a policy of its own is bound by that of the one above it: it could else certify
// whatever that may not.
std::optional<Refusal> CheckPolicy(const Path& path, size_t number, const TrustStore& trust) {
  for (size_t above = number + 1; above < path.certificates.size(); ++above) {
    const X509& authority = *path.certificates[above];
    const PolicyFile* file = trust.PolicyOf(*X509_get_subject_name(&authority));
    if (file == nullptr) {
      continue;
    }
    if (!file->policy) {
      return Refusal{Reason::kSigningPolicyUnreadable, file->error};
    }
    const std::string subject = SubjectText(*path.certificates[number]);
    if (!file->policy->Allows(SubjectText(authority), subject)) {
      return Refusal{Reason::kSigningPolicy, fmt::format("the signing policy of {} does not cover {}",
                                                         SubjectText(authority), subject)};
    }
    return std::nullopt;
  }
  return std::nullopt;
}

// Signing policy and revocation of everything that an authority issued on this path.
std::optional<Refusal> JudgeIssuing(const Path& path, const Layout& layout, const TrustStore& trust,
                                    Time now) {
  for (size_t i = path.certificates.size() - 1; i-- > layout.eec;) {
    const X509& certificate = *path.certificates[i];
    const X509& issuer = *path.certificates[i + 1];
    if (std::optional<Refusal> refusal = CheckPolicy(path, i, trust)) {
      return refusal;
    }
    if (std::optional<Refusal> refusal = CheckRevocation(certificate, issuer, trust, now)) {
      return refusal;
    }
  }
  return std::nullopt;
}

Reason FromOpenSsl(int error) {
  switch (error) {
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return Reason::kBadSignature;
    case X509_V_ERR_INVALID_CA:
    case X509_V_ERR_INVALID_NON_CA:
    case X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
      return Reason::kNotAnAuthority;
    case X509_V_ERR_PATH_LENGTH_EXCEEDED:
      return Reason::kAuthorityPathLength;
    case X509_V_ERR_PROXY_PATH_LENGTH_EXCEEDED:
      return Reason::kProxyPathLength;
    case X509_V_ERR_PROXY_SUBJECT_NAME_VIOLATION:
      return Reason::kProxySubject;
    case X509_V_ERR_INVALID_PURPOSE:
      return Reason::kWrongPurpose;
    case X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION:
      return Reason::kUnknownCriticalExtension;
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
      return Reason::kWeakKey;
    case X509_V_ERR_CA_MD_TOO_WEAK:
      return Reason::kWeakDigest;
    case X509_V_ERR_PERMITTED_VIOLATION:
    case X509_V_ERR_EXCLUDED_VIOLATION:
    case X509_V_ERR_SUBTREE_MINMAX:
    case X509_V_ERR_UNSUPPORTED_CONSTRAINT_TYPE:
    case X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX:
    case X509_V_ERR_UNSUPPORTED_NAME_SYNTAX:
      return Reason::kNameConstraints;
    default:
      return Reason::kOtherwiseInvalid;
  }
}

int OpenSslPurpose(Purpose purpose) {
  switch (purpose) {
    case Purpose::kClient:
      return X509_PURPOSE_SSL_CLIENT;
    case Purpose::kServer:
      return X509_PURPOSE_SSL_SERVER;
    case Purpose::kAny:
      break;
  }
  return X509_PURPOSE_ANY;
}

// OpenSSL's own verification of the same path: nothing but its root is trusted.
std::optional<Refusal> SecondOpinion(const Path& path, Time now, Purpose purpose) {
  constexpr int kAuthLevel = 2;  // 112 bits: RSA 2048, SHA-256
  const StorePtr store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), path.certificates.back().get());
  STACK_OF(X509)* untrusted = sk_X509_new_null();
  for (size_t i = 1; i + 1 < path.certificates.size(); ++i) {
    sk_X509_push(untrusted, path.certificates[i].get());
  }
  const StoreContextPtr context(X509_STORE_CTX_new());
  CHECK(X509_STORE_CTX_init(context.get(), store.get(), path.certificates.front().get(),
                            untrusted) == 1);
  X509_STORE_CTX_set_purpose(context.get(), OpenSslPurpose(purpose));
  X509_VERIFY_PARAM* parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_ALLOW_PROXY_CERTS);
  X509_VERIFY_PARAM_set_auth_level(parameters, kAuthLevel);
  X509_VERIFY_PARAM_set_time(parameters, now.time_since_epoch().count());

  const bool valid = X509_verify_cert(context.get()) == 1;
  const int error = X509_STORE_CTX_get_error(context.get());
  const int depth = X509_STORE_CTX_get_error_depth(context.get());
  const bool same_path = sk_X509_num(X509_STORE_CTX_get0_chain(context.get())) ==
                         static_cast<int>(path.certificates.size());
  sk_X509_free(untrusted);
  ERR_clear_error();
  if (valid && same_path) {
    return std::nullopt;
  }
  const size_t at = std::min(static_cast<size_t>(std::max(depth, 0)), path.certificates.size() - 1);
  return Refusal{
      valid ? Reason::kOtherwiseInvalid : FromOpenSsl(error),
      fmt::format("{}: {}", SubjectText(*path.certificates[at]),
                  valid ? "OpenSSL took another path" : X509_verify_cert_error_string(error))};
}

// The names, the earliest end and the fingerprints; the proxies' part is filled in by JudgeProxies.
Identity Describe(const Path& path, const Layout& layout) {
  const X509& eec = *path.certificates[layout.eec];
  Identity identity;
  identity.subject = SubjectText(eec);
  identity.issuer = IssuerText(eec);
  identity.leaf_subject = SubjectText(path.leaf());
  identity.proxy_count = static_cast<int>(layout.eec);
  identity.not_after = NotAfter(path.leaf());
  std::string all;
  for (size_t i = 0; i < path.certificates.size(); ++i) {
    identity.not_after = std::min(identity.not_after, NotAfter(*path.certificates[i]));
    if (i + 1 < path.certificates.size()) {
      all += ToDer(*path.certificates[i]);
    }
  }
  identity.leaf_fingerprint = Sha256Hex(ToDer(path.leaf()));
  identity.chain_fingerprint = Sha256Hex(all);
  return identity;
}

}  // namespace

Verdict JudgeChain(const Chain& presented, const TrustStore& trust, Time now, Purpose purpose,
                   std::optional<Time> signed_at) {
  const Time valid_at = signed_at.value_or(now);
  std::variant<Path, Refusal> built = BuildPath(presented, trust);
  if (Refusal* refusal = std::get_if<Refusal>(&built)) {
    return *std::move(refusal);
  }
  const Path& path = std::get<Path>(built);
  std::variant<Layout, Refusal> roles = JudgeRoles(path);
  if (Refusal* refusal = std::get_if<Refusal>(&roles)) {
    return *std::move(refusal);
  }
  const Layout& layout = std::get<Layout>(roles);

  Identity identity = Describe(path, layout);
  std::optional<Refusal> refusal = JudgeTimes(path, layout, valid_at);
  if (!refusal) refusal = JudgeProxies(path, layout, identity);
  if (!refusal) refusal = JudgeIssuing(path, layout, trust, now);
  if (!refusal) refusal = SecondOpinion(path, valid_at, purpose);
  if (refusal) {
    return *std::move(refusal);
  }
  return identity;
}

absl::StatusOr<Identity> VerifyChain(const Chain& presented, const TrustStore& trust, Time now,
                                     Purpose purpose) {
  Verdict verdict = JudgeChain(presented, trust, now, purpose);
  if (const Refusal* refusal = std::get_if<Refusal>(&verdict)) {
    return ToStatus(*refusal);
  }
  return std::get<Identity>(std::move(verdict));
}

absl::Status RequireUnlimited(const Identity& identity) {
  if (!identity.is_limited) {
    return absl::OkStatus();
  }
  return ToStatus(
      {Reason::kLimitedProxy,
       fmt::format("{} came with a limited proxy, which starts no jobs here", identity.subject)});
}

}  // namespace sekisho::identity
