// SPDX-License-Identifier: Apache-2.0
// Signatures of a credential's key over words of ours: RSA (PKCS#1) or ECDSA, SHA-256, over a label, then the words.
#pragma once

#include <string>
#include <string_view>

#include "common/identity/credential.h"

namespace sekisho::identity {

// `label` ends in a NUL, so that no words of one protocol can be taken for those of another.
absl::StatusOr<std::string> SignWords(std::string_view label, std::string_view words, const Credential& credential);

bool CanSignWords(const EVP_PKEY* key);  // it is RSA or elliptic-curve
bool SignatureIsValid(std::string_view label, std::string_view words, std::string_view signature, EVP_PKEY* key);

}  // namespace sekisho::identity
