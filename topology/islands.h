// SPDX-License-Identifier: Apache-2.0
// Sites that have measured each other directly are an island.  What joins islands is a relay, whose
// round trips are no sums of links: they say how far islands are from each other, and no more.
// docs/protocol/12-topology.md, "Through the relay".  Pure.
#pragma once

#include <vector>

#include "topology/join.h"
#include "topology/ledger.h"
#include "topology/tree.h"

namespace sekisho::topology {

struct JoinedIslands {
  Tree tree;
  std::vector<Gateway> gateways;  // of each site, on its way to the others of its island
  std::vector<int> cut;           // hosts of the islands that nothing joins to the largest
};

JoinedIslands JoinIslands(int host_count, const std::vector<SiteTree>& sites, const Ledger& ledger);

}  // namespace sekisho::topology
