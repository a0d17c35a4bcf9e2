// SPDX-License-Identifier: Apache-2.0
// Chains as messages carry them: a certificate's DER each, leaf first.
#pragma once

#include <string>
#include <vector>

#include "common/identity/openssl.h"

namespace sekisho::identity {

// InvalidArgument: one is broken, or there are more than a chain may have.
absl::StatusOr<Chain> ParseDerChain(const std::vector<std::string>& ders);
std::vector<std::string> ToDerChain(const Chain& chain);

}  // namespace sekisho::identity
