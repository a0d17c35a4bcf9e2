// SPDX-License-Identifier: Apache-2.0
// `sekisho mpirun --rankmap`: another order of the ranks than that of the machine file's lines.
// docs/protocol/15-mpirun.md, "The order of ranks".  Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/world/machine_file.h"
#include "common/status.h"

namespace sekisho::client {

// A placement (docs/protocol/8-rankmap-files.md) whose nodes are slots: slot i is what rank i has without a map.
// The rank of each slot.  InvalidArgument "SOURCE:LINE: ..." unless each of the `ranks` slots is
// given to one rank.
absl::StatusOr<std::vector<int>> ParseRankOrder(std::string_view text, const std::string& source,
                                                int ranks);

// The ranks of each part's slots.
void ApplyRankOrder(const std::vector<int>& rank_of_slot, std::vector<RankRange>& parts);

}  // namespace sekisho::client
