// SPDX-License-Identifier: Apache-2.0
// `sekisho mpirun --rankmap auto`: the order of ranks in which least time is spent on the way, by what a short run has shown.
// docs/protocol/15-mpirun.md, "The best order".
#pragma once

#include <chrono>
#include <vector>

#include "client/world/traffic_report.h"
#include "common/status.h"
#include "rankmap/network.h"

namespace sekisho::client {

inline constexpr int kOrderedRanksMax = 4096;  // distances of each slot to each are kept

// Whose nodes are slots: slot i is what rank i of the report had, at site `site_of_slot[i]`.  Distances in units of 100 ns, never
// less inside a site than inside a node, nor between sites than inside one; what is near the middle of its two sites' counts
// as that: it is noise.
absl::StatusOr<rankmap::Network> SlotNetwork(const TrafficReport& report, const std::vector<int>& site_of_slot);

struct RankChoice {
  std::vector<int> rank_of_slot;
  double seconds = 0;         // on the way, of all messages together
  double seconds_before = 0;  // in the machine file's order
};
// The machine file's order unless another is better by some per cent.  Searches for `time` at most.
absl::StatusOr<RankChoice> ChooseRanks(const TrafficReport& report, const std::vector<int>& site_of_slot,
                                       std::chrono::milliseconds time);

}  // namespace sekisho::client
