// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/job_key.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

namespace sekisho::nxproxy::client {
namespace {

constexpr std::string_view kFirstLine = "sekisho-relay-key 1\n";
constexpr size_t kCertificatesMost = 16;

int Digit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::optional<std::string> FromHex(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = Digit(text[i]);
    const int low = Digit(text[i + 1]);
    if (high < 0 || low < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(high << 4 | low);
  }
  return text.size() % 2 == 0 ? std::optional(bytes) : std::nullopt;
}

}  // namespace

std::optional<JobKey> ParseJobKey(std::string_view text) {
  if (!text.starts_with(kFirstLine)) {
    return std::nullopt;
  }
  text.remove_prefix(kFirstLine.size());
  const auto job = TakeLine(text, "job");
  const auto owner = TakeLine(text, "owner");
  const auto hex = TakeLine(text, "seed");
  const auto seed = hex ? FromHex(*hex) : std::nullopt;
  if (!job || !owner || !seed || seed->size() != kSeedBytes) {
    return std::nullopt;
  }
  std::string lines;
  while (text.starts_with("speaker=")) {
    const auto line = TakeLine(text, "speaker");
    if (!line) {
      return std::nullopt;
    }
    lines += *line + "\n";
  }
  auto speakers = ParseSpeakers(lines);
  if (!speakers) {
    return std::nullopt;
  }
  return JobKey{*job, *owner, *seed, *std::move(speakers), std::string(text)};
}

KeyPtr KeyOf(const JobKey& key) {
  return KeyPtr(EVP_PKEY_new_raw_private_key(
      EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(key.seed.data()),
      key.seed.size()));
}

namespace {

CertificatePtr SignedByItself(EVP_PKEY* key) {
  CertificatePtr certificate(X509_new());
  X509* raw = certificate.get();
  X509_set_version(raw, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(raw), 1);
  X509_gmtime_adj(X509_getm_notBefore(raw), -3600);
  X509_gmtime_adj(X509_getm_notAfter(raw), 3650L * 24 * 3600);
  X509_set_pubkey(raw, key);
  X509_NAME* name = X509_get_subject_name(raw);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("sekisho job"), -1, -1, 0);
  X509_set_issuer_name(raw, name);
  return X509_sign(raw, key, nullptr) != 0 ? std::move(certificate) : nullptr;
}

std::vector<CertificatePtr> ReadPem(const std::string& pem) {
  struct FreeBio {
    void operator()(BIO* bio) const { BIO_free(bio); }
  };
  const std::unique_ptr<BIO, FreeBio> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::vector<CertificatePtr> all;
  while (all.size() < kCertificatesMost) {
    CertificatePtr next(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (next == nullptr) {
      break;
    }
    all.push_back(std::move(next));
  }
  ERR_clear_error();
  return all;
}

}  // namespace

std::vector<CertificatePtr> CertificatesOf(const JobKey& key, EVP_PKEY* own) {
  std::vector<CertificatePtr> all;
  if (key.statement.empty()) {
    all.push_back(SignedByItself(own));
  } else {
    all = ReadPem(key.statement);
  }
  if (all.empty() || all.front() == nullptr || X509_check_private_key(all.front().get(), own) != 1) {
    ERR_clear_error();
    return {};
  }
  return all;
}

}  // namespace sekisho::nxproxy::client
