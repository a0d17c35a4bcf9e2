// SPDX-License-Identifier: Apache-2.0
#include "common/identity/crl.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include "common/identity/dn.h"
#include "common/identity/path.h"

namespace sekisho::identity {
namespace {

bool IsSignedBy(X509_CRL* crl, const X509& issuer) {
  const bool valid = X509_CRL_verify(crl, X509_get0_pubkey(&issuer)) == 1;
  ERR_clear_error();
  return valid;
}

// Extensions that change what a list means (partial, indirect, delta lists) are critical; none of
// them is understood here.
bool HasCriticalExtension(const X509_CRL& crl) {
  for (int i = 0; i < X509_CRL_get_ext_count(&crl); ++i) {
    if (X509_EXTENSION_get_critical(X509_CRL_get_ext(&crl, i)) != 0) {
      return true;
    }
  }
  return false;
}

bool MaySignCrls(const X509& issuer) {
  return X509_get_ext_by_NID(&issuer, NID_key_usage, -1) < 0 ||
         (X509_get_key_usage(const_cast<X509*>(&issuer)) & KU_CRL_SIGN) != 0;
}

// The newest list that `issuer` signed, or null.
X509_CRL* Newest(const Authorities& authorities, const X509& issuer) {
  X509_CRL* newest = nullptr;
  for (const CrlPtr& crl : authorities.crls) {
    if (IsSignedBy(crl.get(), issuer) &&
        (newest == nullptr ||
         ToTime(X509_CRL_get0_lastUpdate(crl.get())) > ToTime(X509_CRL_get0_lastUpdate(newest)))) {
      newest = crl.get();
    }
  }
  return newest;
}

std::optional<Refusal> CheckList(const X509_CRL& crl, const X509& issuer, Time now) {
  const std::string authority = SubjectText(issuer);
  if (HasCriticalExtension(crl) || !MaySignCrls(issuer)) {
    return Refusal{
        Reason::kCrlUnusable,
        fmt::format("the revocation list of {} is partial, or not its to sign", authority)};
  }
  if (const Time from = ToTime(X509_CRL_get0_lastUpdate(&crl)); from > now) {
    return Refusal{Reason::kCrlNotYetValid,
                   fmt::format("the revocation list of {} begins at {}, now {}", authority,
                               FormatTime(from), FormatTime(now))};
  }
  const ASN1_TIME* until = X509_CRL_get0_nextUpdate(&crl);
  if (until != nullptr && ToTime(until) <= now) {
    return Refusal{Reason::kCrlExpired,
                   fmt::format("the revocation list of {} was to be renewed by {}, now {}",
                               authority, FormatTime(ToTime(until)), FormatTime(now))};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> CheckRevocation(const X509& certificate, const X509& issuer,
                                       const TrustStore& trust, Time now) {
  if (const std::string* error = trust.CrlErrorOf(*X509_get_subject_name(&issuer)); error != nullptr) {
    return Refusal{Reason::kCrlUnusable, *error};
  }
  const Authorities* authorities = trust.Find(*X509_get_subject_name(&issuer));
  if (authorities == nullptr || authorities->crls.empty()) {
    return std::nullopt;
  }
  X509_CRL* crl = Newest(*authorities, issuer);
  if (crl == nullptr) {
    return Refusal{
        Reason::kCrlBadSignature,
        fmt::format("no revocation list under the name {} is signed by that authority's key",
                    SubjectText(issuer))};
  }
  if (std::optional<Refusal> refusal = CheckList(*crl, issuer, now)) {
    return refusal;
  }
  X509_REVOKED* entry = nullptr;
  if (X509_CRL_get0_by_cert(crl, &entry, const_cast<X509*>(&certificate)) == 1) {
    const Reason reason =
        RoleOf(certificate) == Role::kAuthority ? Reason::kAuthorityRevoked : Reason::kRevoked;
    return Refusal{
        reason,
        fmt::format("{} was revoked by {} on {}", SubjectText(certificate), SubjectText(issuer),
                    FormatTime(ToTime(X509_REVOKED_get0_revocationDate(entry))))};
  }
  return std::nullopt;
}

}  // namespace sekisho::identity
