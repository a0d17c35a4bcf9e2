// SPDX-License-Identifier: Apache-2.0
// Lengths of a given tree by robust weighted least squares, and which of its links the data do not
// support: docs/protocol/12-topology.md, "Method fast".  Pure.
#pragma once

#include <vector>

#include "topology/tree.h"

namespace sekisho::topology {

// What was measured between two hosts.
struct Observation {
  int a = 0;
  int b = 0;
  double rtt_us = 0;
  double sigma_us = 1;  // its standard deviation, as far as known beforehand
  long when = 0;        // counted in measurements
};

class Fit {
 public:
  // `tree` must hold every host of every observation in one piece.
  Fit(Tree tree, const std::vector<Observation>& observations);

  // Lengths that fit best; outliers lose weight.
  void Solve(int rounds = 2);

  // Measured minus fitted.
  std::vector<double> Residuals() const;
  double Rtt(const Observation& observation) const;

  // Robust standard deviation of residual / sigma.
  double Spread() const;

  // Standard deviation of the length of a link between two switches.
  double LengthError(int link) const;

  // Contracts the shortest link between switches that is shorter than max(floor, z errors), solves
  // again, and so on until none is left.
  struct Limits {
    double floor_us = 0;
    double z = 3;
    // Of all groups of so many hosts the luckiest looks like one by chance: a link must be so many
    // errors longer than that group's.  Below 0: does not matter.
    double beyond_chance = -1;
  };
  void Contract(const Limits& limits);
  // Whether any link between switches is that sure.
  bool HasSureLink(const Limits& limits) const;

  // With lengths, without contracted links, confidences set.
  Tree Result() const;

  const Tree& tree() const { return tree_; }

 private:
  struct Pair {
    int a, b, ancestor;
  };
  void Gather(const std::vector<double>& per_pair, std::vector<double>& per_link) const;
  void Spread(const std::vector<double>& lengths, std::vector<double>& per_pair) const;
  void SolveWeighted(int iterations);
  void Reweigh();
  bool IsInner(int link) const;
  // How many errors the best of all groups as large as that behind the link is off by chance.
  double ChanceZ(int link) const;
  double LeastZ(int link, const Limits& limits) const;

  Tree tree_;
  const std::vector<Observation>& observations_;
  Rooted rooted_;
  std::vector<Pair> pairs_;
  std::vector<double> weights_;
  std::vector<bool> is_gone_;
  mutable std::vector<double> depth_;
  mutable std::vector<double> sums_;
};

}  // namespace sekisho::topology
