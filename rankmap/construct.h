// SPDX-License-Identifier: Apache-2.0
// Placements built at once, without a seed: the natural orders, recognised lattices, lifted
// hierarchies.
#pragma once

#include <optional>

#include "rankmap/bisem.h"

namespace sekisho::rankmap {

constexpr int kFixedConstructions = 4;
constexpr int kFoldConstruction = 2;
constexpr int kLiftConstruction = 3;

// Construction `index`, from 0 to kFixedConstructions - 1; nullopt if it does not suit the problem.
std::optional<Placement> FixedConstruction(int index, const Graph& graph, const Pattern& pattern,
                                           const Network& network, Random& random, const Stop& stop,
                                           bool& was_stopped);

}  // namespace sekisho::rankmap
