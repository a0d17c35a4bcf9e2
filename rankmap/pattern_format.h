// SPDX-License-Identifier: Apache-2.0
// Patterns and placements as text: docs/protocol/8-rankmap-files.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "rankmap/pattern.h"

namespace sekisho::rankmap {

absl::StatusOr<Pattern> ParsePattern(std::string_view text, std::string_view file);
std::string PrintPattern(const Pattern& pattern);

// Node numbers by rank.
absl::StatusOr<std::vector<int>> ParsePlacement(std::string_view text, std::string_view file);
std::string PrintPlacement(std::span<const int> nodes);

}  // namespace sekisho::rankmap
