// SPDX-License-Identifier: Apache-2.0
#include "common/identity/der_chain.h"

#include <fmt/format.h>

namespace sekisho::identity {

absl::StatusOr<Chain> ParseDerChain(const std::vector<std::string>& ders) {
  if (ders.size() > kChainCertificatesMax) {
    return absl::InvalidArgumentError(
        fmt::format("{} certificates, more than the {} allowed", ders.size(), kChainCertificatesMax));
  }
  Chain chain;
  for (const std::string& der : ders) {
    ASSIGN_OR_RETURN(X509Ptr certificate, ParseDer(der));
    chain.push_back(std::move(certificate));
  }
  return chain;
}

std::vector<std::string> ToDerChain(const Chain& chain) {
  std::vector<std::string> ders;
  for (const X509Ptr& certificate : chain) {
    ders.push_back(ToDer(*certificate));
  }
  return ders;
}

}  // namespace sekisho::identity
