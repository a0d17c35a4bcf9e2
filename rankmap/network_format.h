// SPDX-License-Identifier: Apache-2.0
// Networks as text: docs/protocol/8-rankmap-files.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "rankmap/network.h"

namespace sekisho::rankmap {

// A whole file: one of torus, mesh, tree, matrix or clusters, and settings.
absl::StatusOr<Network> ParseNetwork(std::string_view text, std::string_view file);

// Whether `word` is a network by itself, as `torus:16x16x16` or `tree:4,8:2`.
bool IsNetworkSpec(std::string_view word);
absl::StatusOr<Network> ParseNetworkSpec(std::string_view word);

}  // namespace sekisho::rankmap
