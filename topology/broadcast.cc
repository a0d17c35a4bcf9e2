// SPDX-License-Identifier: Apache-2.0
#include "topology/broadcast.h"

#include <algorithm>
#include <limits>

namespace sekisho::topology {

std::vector<int> BroadcastOrder(const Tree& tree, int source) {
  const Rooted rooted = HangUp(tree, source);
  std::vector<std::vector<int>> children(tree.vertex_count);
  for (size_t i = 1; i < rooted.order.size(); ++i) {
    children[rooted.parent[rooted.order[i]]].push_back(rooted.order[i]);
  }
  std::vector<int> order;
  std::vector<int> stack{source};
  while (!stack.empty()) {
    const int vertex = stack.back();
    stack.pop_back();
    if (tree.IsHost(vertex)) {
      order.push_back(vertex);
    }
    // The stack turns round: what is pushed last is visited first, so the farthest goes first in.
    auto& next = children[vertex];
    std::sort(next.begin(), next.end(),
              [&](int a, int b) { return rooted.depth_us[a] > rooted.depth_us[b]; });
    stack.insert(stack.end(), next.begin(), next.end());
  }
  return order;
}

double PipelineMbps(const Tree& tree, const std::vector<double>& mbps,
                    const std::vector<int>& order) {
  if (order.size() < 2) {
    return 0;
  }
  const Rooted rooted = HangUp(tree, order[0]);
  std::vector<int> up(tree.links.size(), 0);
  std::vector<int> down(tree.links.size(), 0);
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    const int top = rooted.Ancestor(order[i], order[i + 1]);
    for (int vertex = order[i]; vertex != top; vertex = rooted.parent[vertex]) {
      ++up[rooted.parent_link[vertex]];
    }
    for (int vertex = order[i + 1]; vertex != top; vertex = rooted.parent[vertex]) {
      ++down[rooted.parent_link[vertex]];
    }
  }
  double least = std::numeric_limits<double>::max();
  for (size_t i = 0; i < tree.links.size(); ++i) {
    const int uses = std::max(up[i], down[i]);
    if (uses > 0) {
      least = std::min(least, mbps[i] / uses);
    }
  }
  return least;
}

}  // namespace sekisho::topology
