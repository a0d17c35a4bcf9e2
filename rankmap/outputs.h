// SPDX-License-Identifier: Apache-2.0
// Placements in the words of MPI launchers and batch systems: docs/protocol/8-rankmap-files.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sekisho::rankmap {

// Host names by node, one a line.
absl::StatusOr<std::vector<std::string>> ParseHosts(std::string_view text, std::string_view file);

// `nodes` by rank; `hosts` by node.
std::string PrintRankfile(std::span<const int> nodes,
                          std::span<const std::string> hosts);  // Open MPI
std::string PrintHostList(std::span<const int> nodes,
                          std::span<const std::string> hosts);          // MPICH, Slurm
std::string PrintCrayRankOrder(std::span<const int> nodes);             // inverse
std::string PrintRmattMap(std::span<const int> nodes, int node_count);  // inverse

}  // namespace sekisho::rankmap
