// SPDX-License-Identifier: Apache-2.0
// The RSL of one more part of a world, after that of another.  Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"

namespace sekisho::client {

// `rsl`, of a part, with so many ranks; and with another program, unless `command` is empty.
absl::StatusOr<std::string> PartLike(const std::string& rsl, int ranks,
                                     const std::vector<std::string>& command);

}  // namespace sekisho::client
