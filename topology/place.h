// SPDX-License-Identifier: Apache-2.0
// Where on a tree a host hangs, by its measurements to others on it.  Pure.
#pragma once

#include <vector>

#include "topology/fit.h"
#include "topology/tree.h"

namespace sekisho::topology {

// What was measured from the host to be placed to one that has a place.
struct Sight {
  int host = 0;
  double rtt_us = 0;
  double sigma_us = 1;
};

struct Place {
  int vertex = -1;       // a switch, or
  int link = -1;         // a new switch on this link
  double from_u_us = 0;  // ... so far from its end u
  double leaf_us = 0;
  double cost = 0;          // sum of squared (residual / sigma), outliers counted less
  double current_cost = 0;  // the same at the switch given as `current`
};

// `all` = HangUp(tree, any).  A place on a link must be better than any switch by `link_penalty`.
Place BestPlace(const Tree& tree, const Rooted& all, const std::vector<Sight>& sights,
                double link_penalty, int current = -1);

// Hangs a host that has no link yet.
void Hang(Tree& tree, int host, const Place& place);

// Moves hosts that fit clearly better elsewhere; how many moved.  One pass.
int MoveMisplaced(Tree& tree, const std::vector<Observation>& observations, double spread);

}  // namespace sekisho::topology
