// SPDX-License-Identifier: Apache-2.0
#include "common/identity/credential.h"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <pwd.h>
#include <unistd.h>

#include "common/identity/dn.h"
#include "common/identity/files.h"
#include "common/refusal.h"

namespace sekisho::identity {
namespace {

using BioPtr = std::unique_ptr<BIO, Deleter<BIO_free_all>>;

struct PassphraseQuestion {
  const AskPassphrase& ask;
  bool was_asked = false;
  absl::Status status;
};

int AnswerOpenSsl(char* buffer, int size, int /*writing*/, void* context) {
  auto* question = static_cast<PassphraseQuestion*>(context);
  question->was_asked = true;
  if (!question->ask) {
    return -1;
  }
  absl::StatusOr<std::string> answer = question->ask();
  if (!answer.ok()) {
    question->status = answer.status();
    return -1;
  }
  const size_t length = std::min(answer->size(), static_cast<size_t>(size));
  std::memcpy(buffer, answer->data(), length);
  OPENSSL_cleanse(answer->data(), answer->size());
  return static_cast<int>(length);
}

// What kind of key a PKCS#8 text holds.
int KeyTypeOf(const unsigned char* der, long size) {
  const std::unique_ptr<PKCS8_PRIV_KEY_INFO, Deleter<PKCS8_PRIV_KEY_INFO_free>> info(
      d2i_PKCS8_PRIV_KEY_INFO(nullptr, &der, size));
  const ASN1_OBJECT* algorithm = nullptr;
  return info != nullptr && PKCS8_pkey_get0(&algorithm, nullptr, nullptr, nullptr, info.get()) == 1
             ? OBJ_obj2nid(algorithm)
             : NID_undef;
}

// The key of an unencrypted block.  PEM_read_bio_PrivateKey tries every decoder that OpenSSL has, which
// takes half a millisecond; the block's name says which one it needs.  Null: ask that function.
KeyPtr ParsePlainKey(std::string_view pem) {
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  KeyPtr key;
  bool is_over = false;
  while (key == nullptr && !is_over) {
    char* name = nullptr;
    char* header = nullptr;
    unsigned char* data = nullptr;
    long size = 0;
    if (PEM_read_bio(bio.get(), &name, &header, &data, &size) != 1) {
      break;
    }
    const std::string_view kind(name);
    const unsigned char* at = data;
    if (*header == '\0' && kind == PEM_STRING_RSA) {
      key.reset(d2i_PrivateKey(EVP_PKEY_RSA, nullptr, &at, size));
    } else if (*header == '\0' && kind == PEM_STRING_ECPRIVATEKEY) {
      key.reset(d2i_PrivateKey(EVP_PKEY_EC, nullptr, &at, size));
    } else if (kind == PEM_STRING_PKCS8INF) {
      key.reset(d2i_PrivateKey(KeyTypeOf(data, size), nullptr, &at, size));
    }
    is_over = kind.ends_with("PRIVATE KEY");  // the first one counts
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(data, static_cast<size_t>(size));
  }
  ERR_clear_error();
  return key;
}

absl::StatusOr<KeyPtr> ParseKey(std::string_view pem, const std::string& source,
                                const AskPassphrase& ask) {
  if (KeyPtr plain = ParsePlainKey(pem)) {
    return plain;
  }
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  PassphraseQuestion question{ask, false, absl::OkStatus()};
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, AnswerOpenSsl, &question));
  if (key != nullptr) {
    return key;
  }
  const std::string error = LastOpenSslError();
  RETURN_IF_ERROR(question.status);
  if (question.was_asked && !ask) {
    return absl::FailedPreconditionError(
        fmt::format("the key in {} is encrypted: make a proxy first (sekisho proxy init)", source));
  }
  if (question.was_asked) {
    return absl::PermissionDeniedError(fmt::format("wrong passphrase for the key in {}", source));
  }
  return absl::InvalidArgumentError(fmt::format(
      "{}: expected a private key in PEM, saw none that can be read ({})", source, error));
}

bool IsPkcs12(const std::string& path) { return path.ends_with(".p12"); }

// Certificate, key and chain as browsers export them.
absl::StatusOr<Credential> ParsePkcs12(std::string_view bytes, const std::string& source,
                                       const AskPassphrase& ask) {
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  const std::unique_ptr<PKCS12, Deleter<PKCS12_free>> file(
      d2i_PKCS12(nullptr, &at, static_cast<long>(bytes.size())));
  if (file == nullptr) {
    return absl::InvalidArgumentError(fmt::format("{} is not PKCS#12", source));
  }
  if (!ask) {
    return absl::FailedPreconditionError(
        fmt::format("the key in {} is encrypted: make a proxy first (sekisho proxy init)", source));
  }
  ASSIGN_OR_RETURN(std::string passphrase, ask());
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
  STACK_OF(X509)* above = nullptr;
  const bool is_open =
      PKCS12_parse(file.get(), passphrase.c_str(), &key, &certificate, &above) == 1;
  OPENSSL_cleanse(passphrase.data(), passphrase.size());
  Credential credential{{}, KeyPtr(key), source};
  if (certificate != nullptr) {
    credential.chain.emplace_back(certificate);
  }
  while (sk_X509_num(above) > 0) {
    credential.chain.emplace_back(sk_X509_shift(above));
  }
  sk_X509_free(above);
  const std::string error = LastOpenSslError();
  if (!is_open || key == nullptr || certificate == nullptr) {
    return absl::PermissionDeniedError(
        fmt::format("cannot open {}: wrong passphrase, or no key in it ({})", source, error));
  }
  return credential;
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string FileOfUid() { return fmt::format("/tmp/x509up_u{}", geteuid()); }

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

Credential Credential::Clone() const { return {Share(chain), Share(key.get()), source}; }

std::string Credential::ChainPem() const { return ToPem(chain); }

std::string Credential::KeyPem() const {
  BioPtr bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_PKCS8PrivateKey(bio.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                      nullptr) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<Credential> ParseCredential(std::string_view certificates_pem,
                                           std::string_view key_pem, const std::string& source,
                                           const AskPassphrase& ask) {
  absl::StatusOr<Chain> chain = ParsePemChain(certificates_pem);
  if (!chain.ok()) {
    return absl::InvalidArgumentError(fmt::format("{}: {}", source, Message(chain.status())));
  }
  ASSIGN_OR_RETURN(KeyPtr key, ParseKey(key_pem, source, ask));
  const bool fits = X509_check_private_key(chain->front().get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits) {
    return absl::InvalidArgumentError(
        fmt::format("{}: the private key does not belong to the first certificate, {}", source,
                    SubjectText(*chain->front())));
  }
  return Credential{*std::move(chain), std::move(key), source};
}

absl::StatusOr<Credential> ParseCredential(std::string_view pem, const std::string& source,
                                           const AskPassphrase& ask) {
  return ParseCredential(pem, pem, source, ask);
}

absl::StatusOr<Credential> LoadProxyFile(const std::string& path) {
  ASSIGN_OR_RETURN(std::string pem, ReadIdentityFile(path, Secrecy::kPrivate));
  absl::StatusOr<Credential> credential = ParseCredential(pem, path);
  OPENSSL_cleanse(pem.data(), pem.size());
  return credential;
}

absl::StatusOr<Credential> LoadKeyPair(const std::string& certificate_path,
                                       const std::string& key_path, const AskPassphrase& ask) {
  if (IsPkcs12(certificate_path)) {
    ASSIGN_OR_RETURN(const std::string bytes,
                     ReadIdentityFile(certificate_path, Secrecy::kPrivate));
    return ParsePkcs12(bytes, certificate_path, ask);
  }
  ASSIGN_OR_RETURN(const std::string certificates,
                   ReadIdentityFile(certificate_path, Secrecy::kPublic));
  ASSIGN_OR_RETURN(std::string key, ReadIdentityFile(key_path, Secrecy::kPrivate));
  const std::string source = certificate_path == key_path
                                 ? key_path
                                 : fmt::format("{} and {}", certificate_path, key_path);
  absl::StatusOr<Credential> credential = ParseCredential(certificates, key, source, ask);
  OPENSSL_cleanse(key.data(), key.size());
  return credential;
}

absl::StatusOr<Credential> LoadUserCredential() {
  const std::string proxy = DefaultProxyPath();
  if (!Environment("X509_USER_PROXY").empty() || Exists(proxy)) {
    return LoadProxyFile(proxy);
  }
  const KeyPairPaths paths = DefaultKeyPairPaths();
  if (!Exists(paths.certificate)) {
    return absl::NotFoundError(
        fmt::format("no credential: X509_USER_PROXY is not set, and neither {} nor {} exists",
                    proxy, paths.certificate));
  }
  return LoadKeyPair(paths.certificate, paths.key);
}

absl::StatusOr<Credential> LoadHostCredential(const std::string& certificate_path,
                                              const std::string& key_path) {
  return LoadKeyPair(
      certificate_path.empty() ? "/etc/grid-security/hostcert.pem" : certificate_path,
      key_path.empty() ? "/etc/grid-security/hostkey.pem" : key_path);
}

std::string DefaultProxyPath() {
  const std::string set = Environment("X509_USER_PROXY");
  return set.empty() ? FileOfUid() : set;
}

KeyPairPaths DefaultKeyPairPaths() {
  KeyPairPaths paths{Environment("X509_USER_CERT"), Environment("X509_USER_KEY")};
  if (paths.certificate.empty() != paths.key.empty()) {  // one file may hold both
    const std::string both = paths.certificate.empty() ? paths.key : paths.certificate;
    return {both, both};
  }
  if (paths.certificate.empty()) {
    const std::string folder = HomeDirectory() + "/.globus/";
    if (const std::string bundle = folder + "usercred.p12";
        !Exists(folder + "usercert.pem") && Exists(bundle)) {
      return {bundle, bundle};
    }
    return {folder + "usercert.pem", folder + "userkey.pem"};
  }
  return paths;
}

std::string HomeDirectory() {
  if (const std::string home = Environment("HOME"); !home.empty()) {
    return home;
  }
  const passwd* entry = getpwuid(geteuid());
  return entry == nullptr ? "/" : entry->pw_dir;
}

}  // namespace sekisho::identity
