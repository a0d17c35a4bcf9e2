// SPDX-License-Identifier: Apache-2.0
// Ranges of whole numbers for options: CLI11's own say theirs as doubles, 309 digits long.
#pragma once

#include <limits>

#include <CLI/CLI.hpp>

namespace sekisho::client {

inline const CLI::Range kPositive(1, std::numeric_limits<int>::max(), "POSITIVE");
inline const CLI::Range kNotNegative(0, std::numeric_limits<int>::max(), "NONNEGATIVE");

}  // namespace sekisho::client
