// SPDX-License-Identifier: Apache-2.0
// Placements built at once: the natural orders, recognised lattices, a bisection, a lifted hierarchy.  The
// quick ones come first.
#pragma once

#include <optional>

#include "rankmap/bisem.h"
#include "rankmap/evaluate.h"

namespace sekisho::rankmap {

constexpr int kFixedConstructions = 5;
constexpr int kFoldConstruction = 2;
constexpr int kLiftConstruction = 4;

// Construction `index`, from 0 to kFixedConstructions - 1; nullopt if it does not suit the problem.
std::optional<Placement> FixedConstruction(int index, const Graph& graph, const Pattern& pattern,
                                           const Network& network, Objective objective, Random& random,
                                           const Stop& stop, bool& was_stopped);

}  // namespace sekisho::rankmap
