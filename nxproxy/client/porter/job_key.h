// SPDX-License-Identifier: Apache-2.0
// The key that the tasks of one job share, and the certificate that they show each other:
// docs/protocol/14-nxproxy-encryption.md, "The job's key".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/x509.h>

#include "nxproxy/client/porter/key_statement.h"

namespace sekisho::nxproxy::client {

inline constexpr size_t kSeedBytes = 32;

// What a relay-key file says.
struct JobKey {
  std::string job;
  std::string owner;
  std::string seed;  // Ed25519, kSeedBytes
  Speakers speakers;      // whom to believe that a key of another site is the job's
  std::string statement;  // that ours is: certificates, PEM; "" if there is none
};

// "sekisho-relay-key 1\njob=...\nowner=...\nseed=<64 hexadecimal digits>\n", "speaker=SITE SUBJECT\n"...,
// certificates.
std::optional<JobKey> ParseJobKey(std::string_view text);

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeKey>;
using CertificatePtr = std::unique_ptr<X509, FreeKey>;

KeyPtr KeyOf(const JobKey& key);
// Its statement's certificates, the key's own first.  Without a statement one that is signed by itself: who has the key
// has it, whatever that says.  Empty if they cannot be read, or are another key's.
std::vector<CertificatePtr> CertificatesOf(const JobKey& key, EVP_PKEY* own);

}  // namespace sekisho::nxproxy::client
