// SPDX-License-Identifier: Apache-2.0
// A text that a user has written: RSL, a script, a machine file.
#pragma once

#include <string>

#include "common/status.h"

namespace sekisho::client {

// InvalidArgument "PATH: cannot read it: WHY", with the remedy.
absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         const std::string& remedy = "name a file that you may read");

}  // namespace sekisho::client
