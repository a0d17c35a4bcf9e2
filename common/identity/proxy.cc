// SPDX-License-Identifier: Apache-2.0
#include "common/identity/proxy.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>

#include "common/identity/dn.h"
#include "common/identity/files.h"
#include "common/identity/path.h"
#include "common/identity/proxy_info.h"

namespace sekisho::identity {
namespace {

constexpr std::chrono::minutes kClockSlack(5);
constexpr size_t kRequestBytesMax = 16 * 1024;

using BioPtr = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using ProxyInfoPtr =
    std::unique_ptr<PROXY_CERT_INFO_EXTENSION, Deleter<PROXY_CERT_INFO_EXTENSION_free>>;

// Keys of jobs, one for each: OpenSSL looks through all its encoders and decoders for each, which takes several times as
// long as the signature.  These have no parameters, and are as they are in a certificate: RFC 8410.
std::optional<std::string> RawEd25519(EVP_PKEY* key) {
  std::string raw(32, '\0');
  size_t size = raw.size();
  const bool is_one = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 &&
                      EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(raw.data()), &size) == 1 &&
                      size == raw.size();
  return is_one ? std::optional(std::move(raw)) : std::nullopt;
}

std::string PublicDer(EVP_PKEY* key) {
  if (const auto raw = RawEd25519(key)) {
    return std::string("\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12) + *raw;
  }
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  std::string bytes(reinterpret_cast<char*>(der), static_cast<size_t>(std::max(size, 0)));
  OPENSSL_free(der);
  return bytes;
}

void SetPublicKey(X509* certificate, EVP_PKEY* key) {
  if (const auto raw = RawEd25519(key)) {
    auto* const copy = static_cast<unsigned char*>(OPENSSL_memdup(raw->data(), raw->size()));
    CHECK(X509_PUBKEY_set0_param(X509_get_X509_PUBKEY(certificate), OBJ_nid2obj(NID_ED25519), V_ASN1_UNDEF, nullptr, copy,
                                 static_cast<int>(raw->size())) == 1);
    return;
  }
  X509_set_pubkey(certificate, key);
}

// 31 bits of the SHA-1 of the public key: unique per issuer, and what Globus puts there.
long SerialOf(EVP_PKEY* key) {
  const std::string der = PublicDer(key);
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(der.data()), der.size(), digest);
  const long serial = (digest[0] & 0x7fL) << 24 | digest[1] << 16 | digest[2] << 8 | digest[3];
  return std::max(serial, 1L);
}

const char* LanguageOf(CredentialKind kind) {
  switch (kind) {
    case CredentialKind::kLimitedProxy:
      return kLanguageLimited;
    case CredentialKind::kIndependentProxy:
      return kLanguageIndependent;
    default:
      return kLanguageInheritAll;
  }
}

// What the issuer may still sign: its own proxy information, if it is a proxy.
absl::StatusOr<CredentialKind> JudgeIssuer(const Credential& issuer, const ProxyOptions& options,
                                           Time now) {
  const X509& signer = *issuer.chain.front();
  const std::string name = SubjectText(signer);
  if (options.kind == CredentialKind::kEndEntity) {
    return absl::InvalidArgumentError("a proxy is full, limited or independent");
  }
  if (NotAfter(signer) <= now) {
    return absl::FailedPreconditionError(
        fmt::format("{} expired at {}", name, FormatTime(NotAfter(signer))));
  }
  if (X509_get_ext_by_NID(&signer, NID_key_usage, -1) >= 0 &&
      (X509_get_key_usage(const_cast<X509*>(&signer)) & KU_DIGITAL_SIGNATURE) == 0) {
    return absl::FailedPreconditionError(
        fmt::format("{} may not sign proxies: its keyUsage lacks digitalSignature", name));
  }
  if (RoleOf(signer) == Role::kAuthority) {
    return absl::FailedPreconditionError(
        fmt::format("{} is an authority: it signs no proxies", name));
  }
  if (RoleOf(signer) == Role::kEndEntity) {
    return options.kind;
  }
  if (issuer.chain.size() < 2) {
    return absl::FailedPreconditionError(
        fmt::format("{} is a proxy without the certificate that signed it", name));
  }
  Refusal refusal;
  const std::optional<ProxyInfo> info = JudgeProxy(signer, *issuer.chain[1], refusal);
  if (!info.has_value()) {
    return ToStatus(refusal);
  }
  if (info->path_length == 0) {
    return absl::FailedPreconditionError(fmt::format("{} allows no further proxy", name));
  }
  const bool inherits_limit =
      info->kind == CredentialKind::kLimitedProxy && options.kind == CredentialKind::kFullProxy;
  return inherits_limit ? CredentialKind::kLimitedProxy : options.kind;
}

void AddProxyInfo(X509* certificate, const ProxyPolicy& policy, std::optional<long> path_length) {
  const ProxyInfoPtr info(PROXY_CERT_INFO_EXTENSION_new());
  ASN1_OBJECT_free(info->proxyPolicy->policyLanguage);
  info->proxyPolicy->policyLanguage = OBJ_txt2obj(policy.language.c_str(), 1);
  if (!policy.text.empty()) {
    info->proxyPolicy->policy = ASN1_OCTET_STRING_new();
    ASN1_OCTET_STRING_set(info->proxyPolicy->policy, reinterpret_cast<const unsigned char*>(policy.text.data()),
                          static_cast<int>(policy.text.size()));
  }
  if (path_length.has_value()) {
    info->pcPathLengthConstraint = ASN1_INTEGER_new();
    ASN1_INTEGER_set_int64(info->pcPathLengthConstraint, *path_length);
  }
  CHECK(X509_add1_ext_i2d(certificate, NID_proxyCertInfo, info.get(), /*crit=*/1, 0) == 1);
}

// `policy`: none, unless it is not to be that of its kind.  What OpenSSL caches about a certificate is not there yet.
absl::StatusOr<X509Ptr> Make(const Credential& issuer, EVP_PKEY* key, const ProxyOptions& options,
                              const ProxyPolicy& policy, Time now) {
  ASSIGN_OR_RETURN(const CredentialKind kind, JudgeIssuer(issuer, options, now));
  const X509& signer = *issuer.chain.front();
  const long serial = SerialOf(key);
  const std::string common_name = options.name.empty() ? std::to_string(serial) : options.name;
  const Time from = std::max<Time>(now - kClockSlack, NotBefore(signer));
  const Time until = std::min<Time>(now + options.life, NotAfter(signer));

  X509Ptr proxy(X509_new());
  X509_set_version(proxy.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(proxy.get()), serial);
  X509_set_issuer_name(proxy.get(), X509_get_subject_name(&signer));
  const NamePtr subject(X509_NAME_dup(X509_get_subject_name(&signer)));
  X509_NAME_add_entry_by_NID(subject.get(), NID_commonName, MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_subject_name(proxy.get(), subject.get());
  ASN1_TIME_set(X509_getm_notBefore(proxy.get()), from.time_since_epoch().count());
  ASN1_TIME_set(X509_getm_notAfter(proxy.get()), until.time_since_epoch().count());
  SetPublicKey(proxy.get(), key);
  AddProxyInfo(proxy.get(), policy.language.empty() ? ProxyPolicy{LanguageOf(kind), ""} : policy,
               options.path_length);

  int default_digest = NID_undef;
  const bool has_no_choice =  // EdDSA signs without a separate digest
      EVP_PKEY_get_default_digest_nid(issuer.key.get(), &default_digest) == 2 &&
      default_digest == NID_undef;
  if (X509_sign(proxy.get(), issuer.key.get(), has_no_choice ? nullptr : EVP_sha256()) == 0) {
    return absl::FailedPreconditionError(
        fmt::format("{} cannot sign ({})", issuer.source, LastOpenSslError()));
  }
  return proxy;
}

absl::StatusOr<X509Ptr> Issue(const Credential& issuer, EVP_PKEY* key, const ProxyOptions& options,
                              const ProxyPolicy& policy, Time now) {
  ASSIGN_OR_RETURN(const X509Ptr proxy, Make(issuer, key, options, policy, now));
  // What OpenSSL caches about a certificate is taken from its encoding: read it back.
  return ParseDer(ToDer(*proxy));
}

Chain Above(X509Ptr leaf, const Credential& issuer) {
  Chain chain;
  chain.push_back(std::move(leaf));
  for (const X509Ptr& certificate : issuer.chain) {
    chain.push_back(Share(certificate.get()));
  }
  return chain;
}

absl::StatusOr<KeyPtr> MakeKey(int bits) {
  if (bits != 0 && (bits < 2048 || bits > kKeyBitsMax)) {
    return absl::InvalidArgumentError(
        fmt::format("expected an RSA key of 2048 to {} bits, saw {}", kKeyBitsMax, bits));
  }
  KeyPtr key(bits == 0 ? EVP_EC_gen("P-256") : EVP_RSA_gen(static_cast<unsigned int>(bits)));
  CHECK(key != nullptr);
  return key;
}

}  // namespace

absl::StatusOr<Credential> CreateProxy(const Credential& issuer, const ProxyOptions& options,
                                       Time now) {
  RETURN_IF_ERROR(JudgeIssuer(issuer, options, now).status());  // before the slow making of a key
  ASSIGN_OR_RETURN(KeyPtr key, MakeKey(options.bits));
  ASSIGN_OR_RETURN(X509Ptr proxy, Issue(issuer, key.get(), options, {}, now));
  return Credential{Above(std::move(proxy), issuer), std::move(key), issuer.source};
}

absl::StatusOr<std::string> CertifyKey(const Credential& issuer, EVP_PKEY* key, const ProxyPolicy& policy,
                                       std::chrono::seconds life, Time now) {
  ASSIGN_OR_RETURN(const X509Ptr proxy, Make(issuer, key, {.path_length = 0, .life = life}, policy, now));
  return ToPem(*proxy);
}

absl::StatusOr<DelegationRequest> MakeDelegationRequest(int bits) {
  DelegationRequest request;
  ASSIGN_OR_RETURN(request.key, MakeKey(bits));
  const RequestPtr csr(X509_REQ_new());
  X509_REQ_set_version(csr.get(), 0);
  X509_REQ_set_pubkey(csr.get(), request.key.get());
  CHECK(X509_REQ_sign(csr.get(), request.key.get(), EVP_sha256()) > 0);
  unsigned char* der = nullptr;
  const int size = i2d_X509_REQ(csr.get(), &der);
  request.der.assign(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return request;
}

absl::StatusOr<Chain> AnswerDelegation(const Credential& issuer, std::string_view request_der,
                                       const ProxyOptions& options, Time now) {
  if (request_der.size() > kRequestBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("delegation request of {} bytes, more than the {} allowed", request_der.size(),
                    kRequestBytesMax));
  }
  const auto* at = reinterpret_cast<const unsigned char*>(request_der.data());
  const RequestPtr request(d2i_X509_REQ(nullptr, &at, static_cast<long>(request_der.size())));
  EVP_PKEY* key = request == nullptr ? nullptr : X509_REQ_get0_pubkey(request.get());
  const bool is_own = key != nullptr && EVP_PKEY_get_bits(key) <= kKeyBitsMax &&
                      X509_REQ_verify(request.get(), key) == 1;
  ERR_clear_error();
  if (!is_own) {
    return absl::InvalidArgumentError("not a certificate request signed by its own key");
  }
  ASSIGN_OR_RETURN(X509Ptr proxy, Issue(issuer, key, options, {}, now));
  return Above(std::move(proxy), issuer);
}

absl::StatusOr<Credential> AcceptDelegation(DelegationRequest request, Chain answer) {
  const bool fits =
      !answer.empty() && X509_check_private_key(answer.front().get(), request.key.get()) == 1;
  ERR_clear_error();
  if (!fits) {
    return absl::InvalidArgumentError(
        "the delegated certificate is not for the key that was asked for");
  }
  return Credential{std::move(answer), std::move(request.key), "delegation"};
}

std::string ProxyFileText(const Credential& credential) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  EVP_PKEY* key = credential.key.get();
  const bool is_written =
      EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA
          ? PEM_write_bio_PrivateKey_traditional(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1
          : PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1;
  CHECK(is_written);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  std::string text = ToPem(*credential.chain.front());
  text.append(data, static_cast<size_t>(size));
  for (size_t i = 1; i < credential.chain.size(); ++i) {
    text += ToPem(*credential.chain[i]);
  }
  return text;
}

absl::Status WriteProxyFile(const Credential& credential, const std::string& path) {
  std::string text = ProxyFileText(credential);
  absl::Status status = WritePrivateFile(path, text);
  OPENSSL_cleanse(text.data(), text.size());
  return status;
}

}  // namespace sekisho::identity
