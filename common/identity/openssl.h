// SPDX-License-Identifier: Apache-2.0
// OpenSSL's objects as owned values, and the few conversions that all of identity uses.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "common/status.h"

namespace sekisho::identity {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};

using X509Ptr = std::unique_ptr<X509, Deleter<X509_free>>;
using CrlPtr = std::unique_ptr<X509_CRL, Deleter<X509_CRL_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Deleter<X509_REQ_free>>;
using NamePtr = std::unique_ptr<X509_NAME, Deleter<X509_NAME_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;

// Leaf first.
using Chain = std::vector<X509Ptr>;

// Seconds since 1970 in UTC; every function that judges time takes it as an argument.
using Time = std::chrono::sys_seconds;

// A certificate longer than this, or a chain with more, is refused before it is looked at.
inline constexpr size_t kCertificateBytesMax = 64 * 1024;
inline constexpr size_t kChainCertificatesMax = 20;

// Larger keys only serve to keep a verifier busy.
inline constexpr int kKeyBitsMax = 8192;

X509Ptr Share(X509* certificate);  // one more reference to the same object
KeyPtr Share(EVP_PKEY* key);
Chain Share(const Chain& chain);

// PEM text with certificates among other blocks (which are skipped) -> leaf first.
// InvalidArgument if there is none, one is broken, or a limit is passed.
absl::StatusOr<Chain> ParsePemChain(std::string_view pem);
std::string ToPem(const X509& certificate);
std::string ToPem(const Chain& chain);

// DER, the whole of it and nothing behind it.
absl::StatusOr<X509Ptr> ParseDer(std::string_view der);
std::string ToDer(const X509& certificate);

Time NotBefore(const X509& certificate);
Time NotAfter(const X509& certificate);
Time ToTime(const ASN1_TIME* time);

// "2026-11-21T13:05:32Z".
std::string FormatTime(Time time);

// Lower-case hexadecimal SHA-256.
std::string Sha256Hex(std::string_view bytes);

// OpenSSL's oldest queued error as text; empties the queue.
std::string LastOpenSslError();

}  // namespace sekisho::identity
