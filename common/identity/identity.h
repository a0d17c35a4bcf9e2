// SPDX-License-Identifier: Apache-2.0
// Who a verified chain speaks for: docs/protocol/2-identity.md.
#pragma once

#include <string>

#include "common/identity/openssl.h"

namespace sekisho::identity {

enum class CredentialKind {
  kEndEntity,         // no proxy: the user's or the host's own certificate
  kFullProxy,         // RFC 3820 inheritAll
  kLimitedProxy,      // Globus limited, or a full proxy below a limited one
  kIndependentProxy,  // speaks for itself only
};

// "end entity credential", "RFC 3820 compliant impersonation proxy" ...: as grid-proxy-info says
// it.
std::string Describe(CredentialKind kind);

struct Identity {
  // The name that speaks: of the end-entity certificate, or of the independent proxy.
  std::string subject;
  std::string issuer;        // the CA that issued the end-entity certificate
  std::string leaf_subject;  // the certificate that holds the key
  CredentialKind kind = CredentialKind::kEndEntity;
  bool is_limited = false;  // may use storage, but starts no jobs unless a site allows it
  int proxy_count = 0;
  Time not_after;                 // the earliest end in the whole chain, CA included
  std::string leaf_fingerprint;   // SHA-256 of the leaf's DER, lower-case hexadecimal
  std::string chain_fingerprint;  // SHA-256 over the DER of leaf ... below the root

  friend bool operator==(const Identity&, const Identity&) = default;
};

}  // namespace sekisho::identity
