// SPDX-License-Identifier: Apache-2.0
// Multilevel bisection with terminals: heavy-edge matching, greedy growing, Fiduccia-Mattheyses.
// What METIS lacks and BISEM needs is the bias: what it costs a vertex to lie on side 1 rather than
// 0.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmap/random.h"

namespace sekisho::rankmap {

struct BisectGraph {
  std::vector<uint32_t> offsets;
  std::vector<uint32_t> peers;
  std::vector<int64_t> weights;  // by arc: the cost of cutting it; both directions are present
  std::vector<int64_t> bias;     // by vertex: cost on side 1 minus cost on side 0
  std::vector<int32_t> sizes;    // by vertex: ranks in it

  int size() const { return static_cast<int>(bias.size()); }
};

// The side of each vertex, `ones` of them (by size) on side 1, with little cut + bias.  All sizes
// are 1.
std::vector<uint8_t> Bisect(const BisectGraph& graph, int64_t ones, Random& random);

// Improves `sides`, keeping or reaching `ones`.
void RefineSides(const BisectGraph& graph, int64_t ones, int64_t tolerance,
                 std::vector<uint8_t>& sides, Random& random);

}  // namespace sekisho::rankmap
