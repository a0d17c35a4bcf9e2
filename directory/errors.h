// SPDX-License-Identifier: Apache-2.0
// What an administrator of the directory is told: what is wrong, and what to do.
#pragma once

#include <string>

#include <fmt/format.h>

#include "common/refusal.h"

namespace sekisho::directory::errors {

inline absl::Status NoSiteDn(const std::string& url, const std::string& base) {
  return Refuse(absl::StatusCode::kNotFound, 0,
                fmt::format("{}: there is no entry {} to publish below", url, base),
                "set the server up with deploy/slapd/setup, or correct \"base\" in directory.json");
}

inline absl::Status NotOurs(const std::string& url, const std::string& dn, const std::string& why) {
  return Refuse(absl::StatusCode::kPermissionDenied, 0,
                fmt::format("{}: may not write {}: {}", url, dn, why),
                "the server's rule for this site must name this host's certificate: deploy/slapd/setup --site");
}

}  // namespace sekisho::directory::errors
