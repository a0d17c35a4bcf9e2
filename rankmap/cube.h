// SPDX-License-Identifier: Apache-2.0
// Hypercubes whatever their labels, as recursive doubling makes them: found from the graph, laid along Gray codes.
#pragma once

#include <optional>
#include <vector>

#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/placement.h"

namespace sekisho::rankmap {

// By rank its corner, so that ranks that talk differ in one bit; heavier bits are lower.  nullopt if the graph is no cube of
// all ranks.
std::optional<std::vector<uint32_t>> RecogniseCube(const Graph& graph, int ranks);

// Each dimension of a grid takes some bits, lower ones where they go the shortest way: rings by Gray code, lines as they count.
// nullopt if the powers of two in the sides are too few.
std::optional<Placement> PlaceCube(const std::vector<uint32_t>& corners, const Network& network);

}  // namespace sekisho::rankmap
