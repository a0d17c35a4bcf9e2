// SPDX-License-Identifier: Apache-2.0
// Patterns that are grids in disguise: stencils and halos whatever their labels, and how such a
// grid folds onto a torus or mesh.
#pragma once

#include <optional>
#include <vector>

#include "rankmap/bisem.h"
#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/placement.h"

namespace sekisho::rankmap {

struct Lattice {
  std::vector<int> dims;
  std::vector<bool> wrap;
  std::vector<double> weights;       // traffic along each dimension
  std::vector<std::vector<int>> at;  // coordinates by rank
};

// The grid that the pattern (or its heavier part) is, found from the graph alone: edges on opposite
// sides of a square are parallel, edges in line are of one dimension.
std::optional<Lattice> RecogniseLattice(const Graph& graph, int ranks);

// The best few of the ways to fold it onto the network by reflected mixed-radix digits, best first.
std::vector<Placement> FoldLattice(const Lattice& lattice, int ranks, const Network& network,
                                   const Stop& stop);

}  // namespace sekisho::rankmap
