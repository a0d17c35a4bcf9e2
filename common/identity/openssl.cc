// SPDX-License-Identifier: Apache-2.0
#include "common/identity/openssl.h"

#include <ctime>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>

namespace sekisho::identity {
namespace {

using BioPtr = std::unique_ptr<BIO, Deleter<BIO_free_all>>;

// One PEM block as OpenSSL hands it out.
struct PemBlock {
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;

  PemBlock() = default;
  PemBlock(const PemBlock&) = delete;
  PemBlock& operator=(const PemBlock&) = delete;
  ~PemBlock() {
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(data, static_cast<size_t>(size));
  }
};

bool IsCertificateBlock(std::string_view name) {
  return name == PEM_STRING_X509 || name == PEM_STRING_X509_OLD || name == PEM_STRING_X509_TRUSTED;
}

}  // namespace

X509Ptr Share(X509* certificate) {
  X509_up_ref(certificate);
  return X509Ptr(certificate);
}

KeyPtr Share(EVP_PKEY* key) {
  EVP_PKEY_up_ref(key);
  return KeyPtr(key);
}

Chain Share(const Chain& chain) {
  Chain copy;
  for (const X509Ptr& certificate : chain) {
    copy.push_back(Share(certificate.get()));
  }
  return copy;
}

absl::StatusOr<Chain> ParsePemChain(std::string_view pem) {
  constexpr size_t kPemBytesMax = 4 * kChainCertificatesMax * kCertificateBytesMax / 3;
  if (pem.size() > kPemBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("PEM text of {} bytes, more than the {} allowed", pem.size(), kPemBytesMax));
  }
  BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Chain chain;
  while (true) {
    PemBlock block;
    ERR_clear_error();
    if (PEM_read_bio(bio.get(), &block.name, &block.header, &block.data, &block.size) != 1) {
      const unsigned long error = ERR_peek_last_error();
      ERR_clear_error();
      if (ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE) {
        break;
      }
      return absl::InvalidArgumentError("broken PEM block: expected base64 between BEGIN and END");
    }
    if (!IsCertificateBlock(block.name)) {
      continue;
    }
    if (chain.size() == kChainCertificatesMax) {
      return absl::InvalidArgumentError(
          fmt::format("more than {} certificates in one chain", kChainCertificatesMax));
    }
    ASSIGN_OR_RETURN(X509Ptr certificate, ParseDer({reinterpret_cast<const char*>(block.data),
                                                    static_cast<size_t>(block.size)}));
    chain.push_back(std::move(certificate));
  }
  if (chain.empty()) {
    return absl::InvalidArgumentError("no certificate: expected -----BEGIN CERTIFICATE-----");
  }
  return chain;
}

std::string ToPem(const X509& certificate) {
  BioPtr bio(BIO_new(BIO_s_mem()));
  CHECK(PEM_write_bio_X509(bio.get(), &certificate) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string ToPem(const Chain& chain) {
  std::string pem;
  for (const X509Ptr& certificate : chain) {
    pem += ToPem(*certificate);
  }
  return pem;
}

absl::StatusOr<X509Ptr> ParseDer(std::string_view der) {
  if (der.size() > kCertificateBytesMax) {
    return absl::InvalidArgumentError(fmt::format(
        "certificate of {} bytes, more than the {} allowed", der.size(), kCertificateBytesMax));
  }
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const auto* end = at + der.size();
  X509Ptr certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  if (certificate == nullptr || at != end) {
    return absl::InvalidArgumentError(
        fmt::format("not an X.509 certificate ({})", LastOpenSslError()));
  }
  return certificate;
}

std::string ToDer(const X509& certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509(&certificate, &der);
  CHECK(size > 0);
  std::string bytes(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return bytes;
}

Time ToTime(const ASN1_TIME* time) {
  std::tm tm = {};
  if (time == nullptr || ASN1_TIME_to_tm(time, &tm) != 1) {
    return Time();  // 1970: a time that cannot be read has passed
  }
  return Time(std::chrono::seconds(timegm(&tm)));
}

Time NotBefore(const X509& certificate) { return ToTime(X509_get0_notBefore(&certificate)); }
Time NotAfter(const X509& certificate) { return ToTime(X509_get0_notAfter(&certificate)); }

std::string FormatTime(Time time) {
  const std::time_t seconds = time.time_since_epoch().count();
  std::tm tm = {};
  gmtime_r(&seconds, &tm);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", tm.tm_year + 1900, tm.tm_mon + 1,
                     tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += fmt::format("{:02x}", byte);
  }
  return hex;
}

std::string LastOpenSslError() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "no further detail" : reason;
}

}  // namespace sekisho::identity
