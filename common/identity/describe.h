// SPDX-License-Identifier: Apache-2.0
// What a chain says of itself, for people to read.  Nothing is verified here: chain.h judges.
#pragma once

#include <string>

#include "common/identity/openssl.h"

namespace sekisho::identity {

struct Description {
  std::string subject;   // of the leaf
  std::string issuer;    // of the leaf
  std::string identity;  // whom the chain claims to speak for
  std::string type;      // as grid-proxy-info says it
  bool is_proxy = false;
  bool is_limited = false;
  int strength_bits = 0;      // of the leaf's key
  int strength_rsa_bits = 0;  // of an RSA key as strong: 3072 for P-256
  Time not_after;         // the earliest end in the chain
};

// `chain` has at least one certificate.
Description DescribeChain(const Chain& chain);

}  // namespace sekisho::identity
