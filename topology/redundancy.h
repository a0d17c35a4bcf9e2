// SPDX-License-Identifier: Apache-2.0
// Where a tree is not the whole truth: docs/protocol/12-topology.md, "Confidence".  Pure.
#pragma once

#include <vector>

#include "topology/fit.h"
#include "topology/tree.h"

namespace sekisho::topology {

// A switch of the tree, and by how many standard deviations the ways across it differ from each
// other more than pairs of hosts do by chance.
struct SeveralWays {
  int vertex = 0;
  double deviation = 0;
};

// Switches that several stand behind, each pair of hosts taking one of them: some pairs of branches
// find their ways alike long, others do not.  Too few branches or measurements: nothing is said.
std::vector<SeveralWays> FindSeveralWays(const Tree& tree,
                                         const std::vector<Observation>& observations,
                                         double least_deviation = 4);

// The same switches in a tree that has lost hosts since then.
std::vector<SeveralWays> Renumbered(const std::vector<SeveralWays>& ways, const Tree& before,
                                    const Tree& after);

}  // namespace sekisho::topology
