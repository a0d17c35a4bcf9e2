// SPDX-License-Identifier: Apache-2.0
// Where a site's way out begins: docs/protocol/12-topology.md, "Between sites".  Pure.
#pragma once

#include <vector>

#include "topology/join.h"

namespace sekisho::topology {

// What was measured from a host of the site to far away, less the way beyond that place's gateway.
struct FarSight {
  int host = 0;
  int group = 0;  // far site
  double rtt_us = 0;
  double sigma_us = 1;
};

// Places at which the gateway may be, with the way to each from every host of the site.
class GatewaySearch {
 public:
  explicit GatewaySearch(const Tree& tree);

  Gateway Best(const std::vector<FarSight>& sights, int groups) const;
  // From a host of the site to a gateway that Best() gave.
  double Way(int host, const Gateway& gateway) const;
  // Where to begin: what lies fewest links from all hosts, and what is least far from them.
  Gateway Middle() const;
  Gateway Centre() const;
  // Where it is put if nothing tells: there, and between two hosts half way.
  Gateway Assumed() const { return tree_.host_count == 2 ? Centre() : Middle(); }

 private:
  struct Candidate {
    Gateway place;
    double penalty;  // what we hold against it before anything is measured
  };
  double Cost(const Candidate& candidate, const std::vector<FarSight>& sights, int groups) const;

  const Tree& tree_;
  std::vector<Rooted> from_host_;
  std::vector<Candidate> candidates_;
};

}  // namespace sekisho::topology
