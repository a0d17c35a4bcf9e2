// SPDX-License-Identifier: Apache-2.0
// Joins the trees of sites to one: where each site's way out begins (its gateway), how far the
// gateways are from each other, and the tree between them.  docs/protocol/12-topology.md, "Between
// sites".  Pure.
#pragma once

#include <vector>

#include "topology/fit.h"
#include "topology/tree.h"

namespace sekisho::topology {

struct SiteTree {
  std::vector<int> hosts;  // by vertex of `tree`, the host's number in the whole
  Tree tree;
};

// Measured between a host of `left` and one of `right`: positions in their lists.
struct Crossing {
  int left = 0;
  int right = 0;
  std::vector<Observation> observations;
  bool is_relayed = false;  // through a relay, as all others then: so are the links that come of it
};

struct Gateway {
  int vertex = -1;  // of the site's tree, or
  int link = -1;    // a switch on this link
  double from_u_us = 0;
  double cost = 0;    // sum of squared standard deviations, and what was held against the place
  double margin = 0;  // how much worse the next best place is
};

struct Joined {
  Tree tree;
  std::vector<Gateway> gateways;  // of each site; one on the way between others may have more
};

// `crossings` reach every site from every other over some chain.
Joined JoinSites(int host_count, const std::vector<SiteTree>& sites,
                 const std::vector<Crossing>& crossings);

}  // namespace sekisho::topology
