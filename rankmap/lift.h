// SPDX-License-Identifier: Apache-2.0
// Patterns whose weights form a hierarchy (Bruck, recursive doubling, rows of all-to-alls): the
// heavy part is solved well on a small box and copied to all its likes, then the next lighter part,
// box by box.
#pragma once

#include <optional>

#include "rankmap/bisem.h"
#include "rankmap/evaluate.h"
#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/placement.h"

namespace sekisho::rankmap {

struct LiftOptions {
  double effort = 1;  // of the annealing at each level
  int base = 64;      // how large the part is that is solved from nothing
  Objective objective = Objective::kHopBytes;  // link loads are balanced at each level if it wants that
};

// A grid of more than three dimensions: a part of 16 ranks has all its heavy pairs at once, as 64 have on a cube.
bool IsWide(const Network& network);

// nullopt if the weights show no such levels, the boxes do not tile the network, or stopped.  `moves` grows by
// the proposals that it took.
std::optional<Placement> Lift(const Graph& graph, const Pattern& pattern, const Network& network,
                              const LiftOptions& options, Random& random, const Stop& stop, int64_t& moves);

}  // namespace sekisho::rankmap
