// SPDX-License-Identifier: Apache-2.0
// Placements built at once: the natural orders, recognised lattices, a bisection, a lifted hierarchy.  The
// quick ones come first.
#pragma once

#include <optional>

#include "rankmap/solver.h"

namespace sekisho::rankmap {

constexpr int kFixedConstructions = 5;
constexpr int kReversedConstruction = 1;
constexpr int kFoldConstruction = 2;
constexpr int kBisectConstruction = 3;
constexpr int kLiftConstruction = 4;

// Construction `index`, from 0 to kFixedConstructions - 1; nullopt if it does not suit the problem.  `moves`
// grows by the proposals that it took.
std::optional<Placement> FixedConstruction(int index, const Problem& problem, Random& random, const Stop& stop,
                                           bool& was_stopped, int64_t& moves);

}  // namespace sekisho::rankmap
