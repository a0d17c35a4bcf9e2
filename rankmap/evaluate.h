// SPDX-License-Identifier: Apache-2.0
// What a placement costs, computed from nothing: the yardstick that every incremental value is
// tested against.  Definitions: docs/protocol/8-rankmap-files.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/placement.h"

namespace sekisho::rankmap {

enum class Objective { kQap, kHopBytes, kMaxLink, kRmatt, kSteps };

std::string_view NameOf(Objective objective);
absl::StatusOr<Objective> ParseObjective(std::string_view name);
inline bool NeedsLinks(Objective o) { return o != Objective::kQap && o != Objective::kHopBytes; }

struct Values {
  int64_t hop_bytes = 0;  // sum of bytes * distance
  int64_t hops_sum = 0;   // sum of distance over messages, each once: also QAP by counts
  int64_t max_link = 0;   // bytes on the most loaded directed link, 0 without links
  int64_t step_sum = 0;   // sum over steps of the step's max_link
  double avg_hops = 0;    // hop_bytes / bytes
  double rmatt_eval() const {
    return static_cast<double>(hops_sum) * static_cast<double>(max_link);
  }
};

// InvalidArgument if there are more ranks than slots, links are needed and absent, or sums do not
// fit.
absl::Status CheckProblem(const Pattern& pattern, const Network& network, Objective objective);

// `placement` has network.slots() entries.
Values Evaluate(const Pattern& pattern, const Network& network, const Placement& placement);

// The bytes on each link.
std::vector<int64_t> LinkBytes(const Pattern& pattern, const Network& network,
                               const Placement& placement);

// The number that `objective` minimises (kQap by `qap_weight`).
double ObjectiveValue(const Values& values, Objective objective, Weight qap_weight);

// A placement from node numbers by rank: the free slots of each node in order; empties fill the
// rest.
absl::StatusOr<Placement> FromNodes(const Network& network, int ranks, std::span<const int> nodes);
std::vector<int> ToNodes(const Network& network, int ranks, const Placement& placement);

}  // namespace sekisho::rankmap
