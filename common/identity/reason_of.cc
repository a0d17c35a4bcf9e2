// SPDX-License-Identifier: Apache-2.0
#include "common/identity/reason_of.h"

namespace sekisho::identity {

std::optional<Reason> ReasonOf(const absl::Status& status) {
  const std::string_view text(status.message().data(), status.message().size());
  const size_t end = text.starts_with('[') ? text.find(']') : std::string_view::npos;
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  for (const Reason reason : AllReasons()) {
    if (Name(reason) == text.substr(1, end - 1)) {
      return reason;
    }
  }
  return std::nullopt;
}

bool LiesInTheTrustDirectory(Reason reason) {
  switch (reason) {
    case Reason::kAuthorityExpired:
    case Reason::kSigningPolicyUnreadable:
    case Reason::kCrlExpired:
    case Reason::kCrlNotYetValid:
    case Reason::kCrlBadSignature:
    case Reason::kCrlUnusable:
      return true;
    default:
      return false;
  }
}

}  // namespace sekisho::identity
