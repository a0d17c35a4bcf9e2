// SPDX-License-Identifier: Apache-2.0
#include "tests/support/test_ca.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <sys/stat.h>

#include "common/identity/dn.h"

namespace sekisho::test {
namespace {

using identity::Credential;
using identity::Deleter;
using identity::KeyPtr;
using identity::NamePtr;
using identity::Time;
using identity::X509Ptr;

KeyPtr MakeKey(int rsa_bits) {
  KeyPtr key(rsa_bits == 0 ? EVP_EC_gen("P-256") : EVP_RSA_gen(static_cast<unsigned>(rsa_bits)));
  CHECK(key != nullptr);
  return key;
}

long RandomSerial() {
  unsigned char bytes[4];
  CHECK(RAND_bytes(bytes, sizeof(bytes)) == 1);
  return 1 + ((bytes[0] & 0x7fL) << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3]);
}

void AddExtension(X509* certificate, const X509& issuer, const Extension& extension) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, const_cast<X509*>(&issuer), certificate, nullptr, nullptr, 0);
  X509_EXTENSION* made =
      X509V3_EXT_conf_nid(nullptr, &context, extension.nid, extension.value.c_str());
  CHECK(made != nullptr);
  X509_add_ext(certificate, made, -1);
  X509_EXTENSION_free(made);
}

void AddRaw(X509* certificate, const char* oid, bool is_critical, const std::string& der) {
  std::unique_ptr<ASN1_OBJECT, Deleter<ASN1_OBJECT_free>> object(OBJ_txt2obj(oid, 1));
  std::unique_ptr<ASN1_OCTET_STRING, Deleter<ASN1_OCTET_STRING_free>> data(ASN1_OCTET_STRING_new());
  ASN1_OCTET_STRING_set(data.get(), reinterpret_cast<const unsigned char*>(der.data()),
                        static_cast<int>(der.size()));
  X509_EXTENSION* extension =
      X509_EXTENSION_create_by_OBJ(nullptr, object.get(), is_critical ? 1 : 0, data.get());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// The ProxyCertInfo of `shape` in DER.
std::string InfoDer(const ProxyShape& shape) {
  std::unique_ptr<PROXY_CERT_INFO_EXTENSION, Deleter<PROXY_CERT_INFO_EXTENSION_free>> info(
      PROXY_CERT_INFO_EXTENSION_new());
  ASN1_OBJECT_free(info->proxyPolicy->policyLanguage);
  info->proxyPolicy->policyLanguage = OBJ_txt2obj(shape.language.c_str(), 1);
  if (shape.policy.has_value()) {
    info->proxyPolicy->policy = ASN1_OCTET_STRING_new();
    ASN1_OCTET_STRING_set(info->proxyPolicy->policy,
                          reinterpret_cast<const unsigned char*>(shape.policy->data()),
                          static_cast<int>(shape.policy->size()));
  }
  if (shape.path_length.has_value()) {
    info->pcPathLengthConstraint = ASN1_INTEGER_new();
    ASN1_INTEGER_set_int64(info->pcPathLengthConstraint, *shape.path_length);
  }
  unsigned char* der = nullptr;
  const int size = i2d_PROXY_CERT_INFO_EXTENSION(info.get(), &der);
  std::string bytes(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return bytes;
}

X509Ptr Unsigned(const NamePtr& subject, const NamePtr& issuer, EVP_PKEY* key, Time from,
                 Time until) {
  X509Ptr certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), RandomSerial());
  X509_set_subject_name(certificate.get(), subject.get());
  X509_set_issuer_name(certificate.get(), issuer.get());
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), from.time_since_epoch().count());
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), until.time_since_epoch().count());
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

X509Ptr Signed(X509Ptr certificate, EVP_PKEY* key, const char* digest) {
  CHECK(X509_sign(certificate.get(), key, EVP_get_digestbyname(digest)) > 0);
  return *identity::ParseDer(identity::ToDer(*certificate));
}

Credential Above(X509Ptr certificate, KeyPtr key, const Credential* signer) {
  Credential made{{}, std::move(key), "test"};
  made.chain.push_back(std::move(certificate));
  for (size_t i = 0; signer != nullptr && i < signer->chain.size(); ++i) {
    made.chain.push_back(identity::Share(signer->chain[i].get()));
  }
  return made;
}

CertificateOptions WithAuthorityExtensions(CertificateOptions options) {
  bool has_constraints = false;
  bool has_usage = false;
  for (const Extension& extension : options.extensions) {
    has_constraints = has_constraints || extension.nid == NID_basic_constraints;
    has_usage = has_usage || extension.nid == NID_key_usage;
  }
  if (!has_constraints) {
    options.extensions.push_back({NID_basic_constraints, "critical,CA:TRUE"});
  }
  if (!has_usage) {
    options.extensions.push_back({NID_key_usage, "critical,keyCertSign,cRLSign"});
  }
  return options;
}

Credential SelfSigned(const std::string& subject, const CertificateOptions& options) {
  KeyPtr key = MakeKey(options.rsa_bits);
  const NamePtr name = MakeName(subject);
  X509Ptr certificate = Unsigned(name, name, key.get(), options.not_before, options.not_after);
  for (const Extension& extension : options.extensions) {
    AddExtension(certificate.get(), *certificate, extension);
  }
  certificate = Signed(std::move(certificate), key.get(), options.digest);
  return Above(std::move(certificate), std::move(key), nullptr);
}

}  // namespace

Time TestNow() { return Time(std::chrono::seconds(1795000000)); }  // 2026-11-18

TemporaryDirectory::TemporaryDirectory() : path_("/tmp/sekisho-test.XXXXXX") {
  CHECK(mkdtemp(path_.data()) != nullptr);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void WriteFile(const std::string& path, const std::string& text, int mode) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  CHECK(file != nullptr);
  CHECK(std::fwrite(text.data(), 1, text.size(), file) == text.size());
  std::fclose(file);
  CHECK(chmod(path.c_str(), static_cast<mode_t>(mode)) == 0);
}

NamePtr MakeName(const std::string& dn) {
  NamePtr name(X509_NAME_new());
  size_t at = 0;
  while (at < dn.size()) {
    CHECK(dn[at] == '/');
    const size_t equals = dn.find('=', at);
    const size_t next_equals = dn.find('=', equals + 1);
    const size_t end = next_equals == std::string::npos ? dn.size() : dn.rfind('/', next_equals);
    const std::string type = dn.substr(at + 1, equals - at - 1);
    const std::string value = dn.substr(equals + 1, end - equals - 1);
    CHECK(X509_NAME_add_entry_by_txt(name.get(), type.c_str(), MBSTRING_UTF8,
                                     reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1,
                                     0) == 1);
    at = end;
  }
  return name;
}

Credential MakeCertificate(const Credential& signer, const std::string& subject,
                           const CertificateOptions& options) {
  KeyPtr key = options.subject_key == nullptr ? MakeKey(options.rsa_bits)
                                              : identity::Share(options.subject_key);
  const X509& above = *signer.chain.front();
  const NamePtr issuer = options.issuer.empty()
                             ? NamePtr(X509_NAME_dup(X509_get_subject_name(&above)))
                             : MakeName(options.issuer);
  X509Ptr certificate =
      Unsigned(MakeName(subject), issuer, key.get(), options.not_before, options.not_after);
  for (const Extension& extension : options.extensions) {
    AddExtension(certificate.get(), above, extension);
  }
  certificate = Signed(std::move(certificate), signer.key.get(), options.digest);
  return Above(std::move(certificate), std::move(key), &signer);
}

Credential MakeProxy(const Credential& signer, const ProxyShape& shape) {
  EVP_PKEY* given = shape.certificate.subject_key;
  KeyPtr key = given != nullptr ? identity::Share(given) : MakeKey(shape.certificate.rsa_bits);
  const X509& above = *signer.chain.front();
  const NamePtr issuer = shape.certificate.issuer.empty()
                             ? NamePtr(X509_NAME_dup(X509_get_subject_name(&above)))
                             : MakeName(shape.certificate.issuer);
  NamePtr subject;
  if (shape.subject.empty()) {
    subject.reset(X509_NAME_dup(X509_get_subject_name(&above)));
    X509_NAME_add_entry_by_NID(subject.get(), NID_commonName, MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(shape.common_name.c_str()),
                               -1, -1, 0);
  } else {
    subject = MakeName(shape.subject);
  }
  X509Ptr proxy = Unsigned(subject, issuer, key.get(), shape.not_before, shape.not_after);
  if (shape.has_info) {
    AddRaw(proxy.get(), shape.info_oid.c_str(), shape.is_critical,
           shape.info_der.empty() ? InfoDer(shape) : shape.info_der);
  }
  for (const Extension& extension : shape.certificate.extensions) {
    AddExtension(proxy.get(), above, extension);
  }
  proxy = Signed(std::move(proxy), signer.key.get(), shape.certificate.digest);
  return Above(std::move(proxy), std::move(key), &signer);
}

TestCa::TestCa(const std::string& subject, const CertificateOptions& options)
    : credential_(SelfSigned(subject, WithAuthorityExtensions(options))) {}

TestCa::TestCa(const TestCa& parent, const std::string& subject, const CertificateOptions& options)
    : credential_(MakeCertificate(parent.credential_, subject, WithAuthorityExtensions(options))),
      is_root_(false) {
  credential_.chain.pop_back();  // the root is not sent along
}

Credential TestCa::IssueUser(const std::string& subject, CertificateOptions options) const {
  Credential user = MakeCertificate(credential_, subject, options);
  if (is_root_) {
    user.chain.resize(1);
  }
  return user;
}

Credential TestCa::IssueHost(const std::string& host, CertificateOptions options) const {
  in6_addr ignored;
  const bool is_address = inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
                          inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
  options.extensions.push_back({NID_subject_alt_name, (is_address ? "IP:" : "DNS:") + host});
  return IssueUser("/C=JP/O=Test/CN=host/" + host, options);
}

std::string TestCa::Crl(const std::vector<const X509*>& revoked) const {
  return Crl(revoked, CrlOptions());
}

std::string TestCa::Crl(const std::vector<const X509*>& revoked, const CrlOptions& options) const {
  identity::CrlPtr crl(X509_CRL_new());
  X509_CRL_set_version(crl.get(), 1);
  X509_CRL_set_issuer_name(crl.get(), X509_get_subject_name(&certificate()));
  std::unique_ptr<ASN1_TIME, Deleter<ASN1_TIME_free>> time(ASN1_TIME_new());
  ASN1_TIME_set(time.get(), options.last_update.time_since_epoch().count());
  X509_CRL_set1_lastUpdate(crl.get(), time.get());
  for (const X509* certificate : revoked) {
    X509_REVOKED* entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry,
                                  const_cast<ASN1_INTEGER*>(X509_get0_serialNumber(certificate)));
    X509_REVOKED_set_revocationDate(entry, time.get());
    X509_CRL_add0_revoked(crl.get(), entry);
  }
  ASN1_TIME_set(time.get(), options.next_update.time_since_epoch().count());
  X509_CRL_set1_nextUpdate(crl.get(), time.get());
  if (options.has_critical_extension) {
    std::unique_ptr<ASN1_INTEGER, Deleter<ASN1_INTEGER_free>> base(ASN1_INTEGER_new());
    ASN1_INTEGER_set(base.get(), 1);
    CHECK(X509_CRL_add1_ext_i2d(crl.get(), NID_delta_crl, base.get(), /*crit=*/1, 0) == 1);
  }
  X509_CRL_sort(crl.get());
  CHECK(X509_CRL_sign(crl.get(), credential_.key.get(), EVP_sha256()) > 0);
  std::unique_ptr<BIO, Deleter<BIO_free_all>> bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_X509_CRL(bio.get(), crl.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string TestCa::SigningPolicyText(const std::vector<std::string>& patterns) const {
  std::string quoted;
  for (const std::string& pattern : patterns) {
    quoted += fmt::format("{}\"{}\"", quoted.empty() ? "" : " ", pattern);
  }
  return fmt::format(
      "access_id_CA  X509  '{}'\npos_rights  globus  CA:sign\ncond_subjects  globus  '{}'\n",
      identity::SubjectText(certificate()), quoted);
}

std::string TestCa::Hash() const {
  return fmt::format("{:08x}", X509_NAME_hash_ex(X509_get_subject_name(&certificate()), nullptr,
                                                 nullptr, nullptr));
}

void TestCa::Install(const std::string& directory, const std::string& crl,
                     const std::string& signing_policy) const {
  const std::string stem = directory + "/" + Hash();
  int number = 0;
  while (std::filesystem::exists(fmt::format("{}.{}", stem, number))) {
    ++number;
  }
  WriteFile(fmt::format("{}.{}", stem, number), identity::ToPem(certificate()));
  if (!crl.empty()) {
    WriteFile(stem + ".r0", crl);
  }
  if (!signing_policy.empty()) {
    WriteFile(stem + ".signing_policy", signing_policy);
  }
}

}  // namespace sekisho::test
