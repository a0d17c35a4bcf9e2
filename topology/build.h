// SPDX-License-Identifier: Apache-2.0
// From observations to a tree without links that they do not support: docs/protocol/12-topology.md,
// "From a matrix to a tree".  Pure.
#pragma once

#include <vector>

#include "topology/fit.h"
#include "topology/tree.h"

namespace sekisho::topology {

struct BuildLimits {
  double z = 3.2;  // a link must be so many times its error ...
  double beyond_chance =
      0.8;  // ... so many errors longer than the best of all like it by chance ...
  double first_beyond_chance = 1.8;  // ... one of them at least so many ...
  double floor_share = 0.7;          // ... so many times the noise of one pair ...
  double floor_us = 0.1;             // ... and so long
};

// What is known of the noise after a build.
struct BuildReport {
  double spread = 1;  // residual / sigma, robust
  std::vector<double> residuals;
};

// Observations cover most pairs of the `n` hosts.
Tree BuildTree(int n, const std::vector<Observation>& observations, const BuildLimits& limits,
               BuildReport* report);

// Adds switches where the branches at one switch say so, moves hosts, contracts, fits.
Tree Improve(Tree tree, const std::vector<Observation>& observations, const BuildLimits& limits,
             BuildReport* report);

}  // namespace sekisho::topology
