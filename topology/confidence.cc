// SPDX-License-Identifier: Apache-2.0
#include "topology/confidence.h"

#include <algorithm>

namespace sekisho::topology {

std::vector<double> SwitchConfidence(const Tree& tree,
                                     const std::vector<SeveralWays>& several_ways) {
  std::vector<double> confidence(tree.vertex_count, 1);
  for (const Link& link : tree.links) {
    for (const int end : {link.u, link.v}) {
      if (!tree.IsHost(end)) {
        confidence[end] = std::min(confidence[end], link.confidence);
      }
    }
  }
  for (const SeveralWays& one : several_ways) {
    confidence[one.vertex] = 0;
  }
  return confidence;
}

}  // namespace sekisho::topology
