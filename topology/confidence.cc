// SPDX-License-Identifier: Apache-2.0
#include "topology/confidence.h"

#include <algorithm>

namespace sekisho::topology {

std::vector<double> SwitchConfidence(const Tree& tree) {
  std::vector<double> confidence(tree.vertex_count, 1);
  for (const Link& link : tree.links) {
    for (const int end : {link.u, link.v}) {
      if (!tree.IsHost(end)) {
        confidence[end] = std::min(confidence[end], link.confidence);
      }
    }
  }
  return confidence;
}

}  // namespace sekisho::topology
