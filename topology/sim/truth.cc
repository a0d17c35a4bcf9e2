// SPDX-License-Identifier: Apache-2.0
#include "topology/sim/truth.h"

namespace sekisho::topology::sim {

Noise QuietNoise() { return {}; }

Noise LabNoise() { return {.pair_us = 2.2, .connection_chance = 0.05, .connection_us = 10}; }

Noise ExactNoise() { return {.is_exact = true}; }

Tree TreeOf(const Truth& truth) {
  Tree tree{.host_count = truth.host_count, .vertex_count = truth.vertex_count, .links = {}};
  for (const TruthLink& link : truth.links) {
    tree.links.push_back({link.u, link.v, link.uv_us + link.vu_us});
  }
  return tree;
}

}  // namespace sekisho::topology::sim
