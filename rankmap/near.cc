// SPDX-License-Identifier: Apache-2.0
#include "rankmap/near.h"

#include <algorithm>
#include <numeric>

namespace sekisho::rankmap {
namespace {

constexpr int kWindow = 12;
constexpr int kMatrixNear = 16;

// Neighbours in the grid, then theirs.
void GridNear(const Network& network, int node, std::vector<uint32_t>& list, uint32_t& inner) {
  const int dimensions = static_cast<int>(network.grid().dims.size());
  const auto step = [&](int from, int d, int sign) {
    const int size = network.grid().dims[d];
    int stride = 1;
    for (int i = 0; i < d; ++i) {
      stride *= network.grid().dims[i];
    }
    const int c = network.Coordinate(from, d) + sign;
    if (c < 0 || c >= size) {
      return network.grid().wrap[d] ? from - sign * (size - 1) * stride : from;
    }
    return from + sign * stride;
  };
  const auto add = [&](int other) {
    if (other != node && std::find(list.begin(), list.end(), other) == list.end()) {
      list.push_back(other);
    }
  };
  for (int d = 0; d < dimensions; ++d) {
    add(step(node, d, 1));
    add(step(node, d, -1));
  }
  inner = static_cast<uint32_t>(list.size());
  for (uint32_t i = 0; i < inner; ++i) {
    for (int d = 0; d < std::min(dimensions, 3); ++d) {
      add(step(static_cast<int>(list[i]), d, 1));
      add(step(static_cast<int>(list[i]), d, -1));
    }
  }
}

void WindowNear(const Network& network, int node, std::vector<uint32_t>& list, uint32_t& inner) {
  std::vector<int> others;
  if (network.kind() == Network::Kind::kTree) {
    for (int other = node - kWindow; other <= node + kWindow; ++other) {
      if (other >= 0 && other < network.nodes() && other != node) {
        others.push_back(other);
      }
    }
  } else {
    others.resize(network.nodes());
    std::iota(others.begin(), others.end(), 0);
    others.erase(others.begin() + node);
  }
  const auto nearer = [&](int a, int b) {
    const int64_t da = network.Distance(node, a);
    const int64_t db = network.Distance(node, b);
    return da != db ? da < db : a < b;
  };
  const size_t keep = std::min<size_t>(kMatrixNear, others.size());
  std::partial_sort(others.begin(), others.begin() + keep, others.end(), nearer);
  list.assign(others.begin(), others.begin() + keep);
  inner = static_cast<uint32_t>(std::min<size_t>(keep, 8));
}

}  // namespace

NearNodes::NearNodes(const Network& network) : capacity_(network.capacity()) {
  offsets_.push_back(0);
  std::vector<uint32_t> list;
  for (int node = 0; node < network.nodes(); ++node) {
    list.clear();
    uint32_t inner = 0;
    if (network.kind() == Network::Kind::kGrid) {
      GridNear(network, node, list, inner);
    } else {
      WindowNear(network, node, list, inner);
    }
    inner_.push_back(inner);
    nodes_.insert(nodes_.end(), list.begin(), list.end());
    offsets_.push_back(static_cast<uint32_t>(nodes_.size()));
  }
}

}  // namespace sekisho::rankmap
