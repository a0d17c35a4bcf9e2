// SPDX-License-Identifier: Apache-2.0
// The key that the tasks of one job share, and the certificate that they show each other:
// docs/protocol/14-nxproxy-encryption.md, "The job's key".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <openssl/x509.h>

namespace sekisho::nxproxy::client {

inline constexpr size_t kSeedBytes = 32;

// What a relay-key file says.
struct JobKey {
  std::string job;
  std::string owner;
  std::string seed;  // Ed25519, kSeedBytes
};

// "sekisho-relay-key 1\njob=...\nowner=...\nseed=<64 hexadecimal digits>\n".
std::optional<JobKey> ParseJobKey(std::string_view text);

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeKey>;
using CertificatePtr = std::unique_ptr<X509, FreeKey>;

KeyPtr KeyOf(const JobKey& key);
// Signed by itself; who has the key has it, whatever it says.
CertificatePtr CertificateOf(EVP_PKEY* key);

}  // namespace sekisho::nxproxy::client
