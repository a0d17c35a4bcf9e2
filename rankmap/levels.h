// SPDX-License-Identifier: Apache-2.0
// The hierarchy in a pattern's weights, and the boxes of a grid that can hold its parts.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmap/network.h"
#include "rankmap/pattern.h"

namespace sekisho::rankmap {

using Vertices = std::vector<uint32_t>;  // ascending

// The parts into which edges of at least some weight connect the ranks, all of one size.
struct Level {
  int size = 0;
  int64_t weight = 0;
  std::vector<Vertices> parts;
};

std::vector<Level> FindLevels(const Graph& graph, int ranks);

// Boxes of `size` nodes that tile the network and are tiled by `inner`: the one whose nodes are nearest to each other, of
// such ones that with most dimensions filled, which leaves the long ones for what is light.  Empty if none.
std::vector<int> FindBox(const GridShape& grid, const std::vector<int>& inner, int size);

}  // namespace sekisho::rankmap
