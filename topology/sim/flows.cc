// SPDX-License-Identifier: Apache-2.0
#include "topology/sim/flows.h"

#include <algorithm>
#include <limits>

namespace sekisho::topology::sim {

std::vector<double> FairRates(const Tree& tree, const std::vector<double>& mbps,
                              const std::vector<std::pair<int, int>>& flows) {
  const Rooted rooted = HangUp(tree, tree.vertex_count - 1);
  // Directed link 2 i goes towards the root, 2 i + 1 away from it.
  std::vector<std::vector<int>> ways(flows.size());
  std::vector<double> left(2 * mbps.size());
  std::vector<int> users(2 * mbps.size(), 0);
  for (size_t i = 0; i < mbps.size(); ++i) {
    left[2 * i] = left[2 * i + 1] = mbps[i];
  }
  for (size_t f = 0; f < flows.size(); ++f) {
    const auto [from, to] = flows[f];
    const int top = rooted.Ancestor(from, to);
    for (int vertex = from; vertex != top; vertex = rooted.parent[vertex]) {
      ways[f].push_back(2 * rooted.parent_link[vertex]);
    }
    for (int vertex = to; vertex != top; vertex = rooted.parent[vertex]) {
      ways[f].push_back(2 * rooted.parent_link[vertex] + 1);
    }
    for (const int link : ways[f]) {
      ++users[link];
    }
  }
  // The link that gives its flows least settles them; and again without those.
  std::vector<double> rates(flows.size(), -1);
  for (;;) {
    int tightest = -1;
    double least = std::numeric_limits<double>::max();
    for (size_t link = 0; link < left.size(); ++link) {
      if (users[link] > 0 && left[link] / users[link] < least) {
        least = left[link] / users[link];
        tightest = static_cast<int>(link);
      }
    }
    if (tightest < 0) {
      return rates;
    }
    for (size_t f = 0; f < flows.size(); ++f) {
      if (rates[f] < 0 && std::find(ways[f].begin(), ways[f].end(), tightest) != ways[f].end()) {
        rates[f] = least;
        for (const int link : ways[f]) {
          left[link] = std::max(0.0, left[link] - least);
          --users[link];
        }
      }
    }
  }
}

}  // namespace sekisho::topology::sim
