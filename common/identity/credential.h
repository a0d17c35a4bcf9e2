// SPDX-License-Identifier: Apache-2.0
// A private key with its certificate chain, and where users and hosts keep theirs.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/identity/openssl.h"

namespace sekisho::identity {

// Asked once, when a key is encrypted; empty function: such a key is refused.
using AskPassphrase = std::function<absl::StatusOr<std::string>()>;

struct Credential {
  Chain chain;         // leaf first, up to the end-entity certificate or higher
  KeyPtr key;          // the leaf's
  std::string source;  // the file that it came from, for messages

  Credential Clone() const;
  std::string ChainPem() const;
  std::string KeyPem() const;  // unencrypted PKCS#8: hand it on, never log it
};

// Certificates and key in one text, in the order of a proxy file: certificate, key, rest of the
// chain. InvalidArgument unless the key belongs to the first certificate.
absl::StatusOr<Credential> ParseCredential(std::string_view pem, const std::string& source,
                                           const AskPassphrase& ask = {});

// Certificate and key in two texts.
absl::StatusOr<Credential> ParseCredential(std::string_view certificates_pem,
                                           std::string_view key_pem, const std::string& source,
                                           const AskPassphrase& ask = {});

// A proxy file: mode 0600 or 0400, ours.
absl::StatusOr<Credential> LoadProxyFile(const std::string& path);

// Certificate and key files; the key's mode as above.  A certificate file *.p12 (PKCS#12) has both.
absl::StatusOr<Credential> LoadKeyPair(const std::string& certificate_path,
                                       const std::string& key_path, const AskPassphrase& ask = {});

// The user's, by the rules that every grid tool shares: $X509_USER_PROXY if set; else
// /tmp/x509up_u<uid> if it exists; else $X509_USER_CERT with $X509_USER_KEY; else
// ~/.globus/usercert.pem with userkey.pem if that is not encrypted.  NotFound names what was tried.
absl::StatusOr<Credential> LoadUserCredential();

// Empty arguments mean /etc/grid-security/hostcert.pem and hostkey.pem.
absl::StatusOr<Credential> LoadHostCredential(const std::string& certificate_path = "",
                                              const std::string& key_path = "");

// $X509_USER_PROXY, else /tmp/x509up_u<uid>.
std::string DefaultProxyPath();

// $X509_USER_CERT and $X509_USER_KEY, else ~/.globus/usercert.pem and userkey.pem, else
// usercred.p12.
struct KeyPairPaths {
  std::string certificate;
  std::string key;
};
KeyPairPaths DefaultKeyPairPaths();

// $HOME, else the account's.
std::string HomeDirectory();

}  // namespace sekisho::identity
