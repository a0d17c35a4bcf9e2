// SPDX-License-Identifier: Apache-2.0
// What a relay has bound at its upstream, so that it takes the same back after its own restart.
#pragma once

#include <map>
#include <string>

#include "common/status.h"

namespace sekisho::nxproxy {

struct Bound {
  uint64_t endpoint = 0;
  std::string secret;
  friend bool operator==(const Bound&, const Bound&) = default;
};

// By "TARGET PORT"; broken lines are skipped, no file is an empty one.
std::map<std::string, Bound> ReadExposed(const std::string& path);

// Mode 0600, atomically: it holds secrets.
absl::Status WriteExposed(const std::string& path, const std::map<std::string, Bound>& bounds);

}  // namespace sekisho::nxproxy
