// SPDX-License-Identifier: Apache-2.0
// Starts a program of the system, as some account.
#pragma once

#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"

namespace sekisho::qserver {

struct RunAs {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  std::string home;
};

// NotFound if there is none.
absl::StatusOr<RunAs> FindRunAs(const std::string& account);

// `words`: the program's path first; no shell sees them.  `environment` is all of it.  `streams`: its standard input,
// output and error; it has no other descriptors.  `as`, if none: as we are; never root.  Internal if it cannot be
// started.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& words, const std::vector<std::string>& environment,
                            const std::array<int, 3>& streams, const std::optional<RunAs>& as);

}  // namespace sekisho::qserver
