// SPDX-License-Identifier: Apache-2.0
#include "rankmap/area.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

namespace sekisho::rankmap {

Area AreaMap::Whole() const {
  Area area;
  if (network_.kind() == Network::Kind::kGrid) {
    area.sizes = network_.grid().dims;
    area.low.assign(area.sizes.size(), 0);
  } else {
    area.nodes.resize(network_.nodes());
    std::iota(area.nodes.begin(), area.nodes.end(), 0);
  }
  return area;
}

int AreaMap::Nodes(const Area& area) const {
  return area.nodes.empty()
             ? std::accumulate(area.sizes.begin(), area.sizes.end(), 1, std::multiplies<>())
             : static_cast<int>(area.nodes.size());
}

int AreaMap::AnyNode(const Area& area) const { return NodesOf(area).front(); }

std::vector<int> AreaMap::NodesOf(const Area& area) const {
  if (!area.nodes.empty()) {
    return area.nodes;
  }
  std::vector<int> nodes = {0};
  for (size_t d = area.sizes.size(); d-- > 0;) {
    std::vector<int> next;
    for (int c = 0; c < area.sizes[d]; ++c) {
      for (const int node : nodes) {
        next.push_back(node * network_.grid().dims[d] + area.low[d] + c);
      }
    }
    nodes = std::move(next);
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

void AreaMap::Split(const Area& area, Area& first, Area& second) const {
  if (network_.kind() == Network::Kind::kTree) {
    return SplitTree(area, first, second);
  }
  if (network_.kind() == Network::Kind::kMatrix) {
    return SplitMatrix(area, first, second);
  }
  const size_t axis = std::max_element(area.sizes.begin(), area.sizes.end()) - area.sizes.begin();
  first = second = area;
  first.sizes[axis] = area.sizes[axis] / 2;
  second.low[axis] += first.sizes[axis];
  second.sizes[axis] -= first.sizes[axis];
}

// Between two subtrees of the deepest level that still separates the area, as near the middle as it
// goes.
void AreaMap::SplitTree(const Area& area, Area& first, Area& second) const {
  const auto& levels = network_.levels();
  int below = network_.nodes();
  size_t cut = area.nodes.size() / 2;
  for (const TreeLevel& level : levels) {
    below /= level.arity;
    const int low = area.nodes.front() / below;
    const int high = area.nodes.back() / below;
    if (low != high) {
      const int middle = ((low + high + 1) / 2) * below;
      cut = std::lower_bound(area.nodes.begin(), area.nodes.end(), middle) - area.nodes.begin();
      break;
    }
  }
  first.nodes.assign(area.nodes.begin(), area.nodes.begin() + cut);
  second.nodes.assign(area.nodes.begin() + cut, area.nodes.end());
}

// The two farthest of a sample are the seeds; each node goes to the nearer one.
void AreaMap::SplitMatrix(const Area& area, Area& first, Area& second) const {
  const auto farthest = [&](int from) {
    return *std::max_element(area.nodes.begin(), area.nodes.end(), [&](int a, int b) {
      return network_.Distance(from, a) < network_.Distance(from, b);
    });
  };
  const int seed0 = farthest(area.nodes.front());
  const int seed1 = farthest(seed0);
  std::vector<int> nodes = area.nodes;
  const auto lean = [&](int node) {
    return node == seed0   ? std::numeric_limits<int64_t>::min()
           : node == seed1 ? std::numeric_limits<int64_t>::max()
                           : network_.Distance(seed0, node) - network_.Distance(seed1, node);
  };
  std::stable_sort(nodes.begin(), nodes.end(), [&](int a, int b) { return lean(a) < lean(b); });
  // At the widest gap in that order; in the middle if there is none.
  size_t cut = nodes.size() / 2;
  int64_t widest = 0;
  for (size_t i = 2; i + 1 < nodes.size(); ++i) {
    const int64_t gap = lean(nodes[i]) - lean(nodes[i - 1]);
    if (gap > widest) {
      widest = gap;
      cut = i;
    }
  }
  cut = std::clamp<size_t>(cut, 1, nodes.size() - 1);
  first.nodes.assign(nodes.begin(), nodes.begin() + cut);
  second.nodes.assign(nodes.begin() + cut, nodes.end());
  std::sort(first.nodes.begin(), first.nodes.end());
  std::sort(second.nodes.begin(), second.nodes.end());
}

int64_t AreaMap::TwiceDistance(const Area& a, const Area& b) const {
  if (network_.kind() == Network::Kind::kGrid) {
    int64_t distance = 0;
    for (size_t d = 0; d < a.sizes.size(); ++d) {
      const int delta = std::abs(2 * a.low[d] + a.sizes[d] - 2 * b.low[d] - b.sizes[d]);
      distance +=
          network_.grid().wrap[d] ? std::min(delta, 2 * network_.grid().dims[d] - delta) : delta;
    }
    return distance;
  }
  if (network_.kind() == Network::Kind::kTree) {
    return 2 * network_.Distance(a.nodes[a.nodes.size() / 2], b.nodes[b.nodes.size() / 2]);
  }
  constexpr size_t kSample = 5;
  int64_t sum = 0;
  int64_t pairs = 0;
  for (size_t i = 0; i < std::min(kSample, a.nodes.size()); ++i) {
    for (size_t j = 0; j < std::min(kSample, b.nodes.size()); ++j) {
      sum += network_.Distance(a.nodes[i * a.nodes.size() / std::min(kSample, a.nodes.size())],
                               b.nodes[j * b.nodes.size() / std::min(kSample, b.nodes.size())]);
      ++pairs;
    }
  }
  return 2 * sum / pairs;
}

}  // namespace sekisho::rankmap
