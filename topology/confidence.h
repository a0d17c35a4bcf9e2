// SPDX-License-Identifier: Apache-2.0
// How sure the switches of a tree are: docs/protocol/12-topology.md, "Confidence".  Pure.
#pragma once

#include <vector>

#include "topology/redundancy.h"
#include "topology/tree.h"

namespace sekisho::topology {

// Of each vertex: a switch is as sure as the least sure of its links to others, a host is sure.
std::vector<double> SwitchConfidence(const Tree& tree,
                                     const std::vector<SeveralWays>& several_ways = {});

}  // namespace sekisho::topology
