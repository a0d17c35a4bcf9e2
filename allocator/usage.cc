// SPDX-License-Identifier: Apache-2.0
#include "allocator/usage.h"

#include <algorithm>

namespace sekisho::allocator {

Usage::Usage(size_t nodes, int processors_per_node)
    : nodes_(nodes), processors_per_node_(processors_per_node) {}

void Usage::Change(const Shares& shares, bool exclusive, int sign) {
  for (const Share& share : shares) {
    nodes_[share.node].busy += sign * share.processes;
    nodes_[share.node].exclusive += sign * int(exclusive);
  }
}

int Usage::Free(size_t node, bool exclusive) const {
  const Node& it = nodes_[node];
  if (!it.is_up || it.exclusive > 0 || (exclusive && it.busy > 0)) {
    return 0;
  }
  return int(std::max<int64_t>(0, processors_per_node_ - it.busy));
}

int64_t Usage::Free(const Shape& shape) const {
  int64_t free = 0;
  for (size_t node = 0; node < nodes_.size(); ++node) {
    free += shape.usable[node] ? Free(node, shape.exclusive) : 0;
  }
  return free;
}

std::optional<Shares> Usage::Place(const Shape& shape, const std::vector<size_t>& order) const {
  if (shape.host_count > 0) {
    return PlaceOnHosts(shape, order);
  }

  // One node, the one that it fills best.
  std::optional<size_t> best;
  for (const size_t node : order) {
    const int free = shape.usable[node] ? Free(node, shape.exclusive) : 0;
    if (free >= shape.processes && (!best || free < Free(*best, shape.exclusive))) {
      best = node;
    }
  }
  if (best) {
    return Shares{{*best, shape.processes}};
  }

  Shares shares;
  int left = shape.processes;
  for (const size_t node : order) {
    const int take = std::min(left, shape.usable[node] ? Free(node, shape.exclusive) : 0);
    if (take > 0) {
      shares.push_back({node, take});
      left -= take;
    }
  }
  return left == 0 ? std::optional(std::move(shares)) : std::nullopt;
}

std::optional<Shares> Usage::PlaceOnHosts(const Shape& shape,
                                          const std::vector<size_t>& order) const {
  std::vector<size_t> nodes;
  for (const size_t node : order) {
    if (shape.usable[node] && Free(node, shape.exclusive) > 0) {
      nodes.push_back(node);
    }
  }
  if (nodes.size() < size_t(shape.host_count) || shape.processes < shape.host_count) {
    return std::nullopt;
  }
  std::stable_sort(nodes.begin(), nodes.end(), [&](size_t a, size_t b) {
    return Free(a, shape.exclusive) > Free(b, shape.exclusive);
  });
  nodes.resize(shape.host_count);

  // Deal the processes out in rounds; a node that is full is passed over.
  Shares shares;
  int64_t room = 0;
  for (const size_t node : nodes) {
    shares.push_back({node, 0});
    room += Free(node, shape.exclusive);
  }
  if (room < shape.processes) {
    return std::nullopt;
  }
  int left = shape.processes;
  while (left > 0) {
    int open = 0;
    for (const Share& share : shares) {
      open += share.processes < Free(share.node, shape.exclusive);
    }
    const int each = std::max(1, left / open);
    for (Share& share : shares) {
      const int take = std::min({left, each, Free(share.node, shape.exclusive) - share.processes});
      share.processes += take;
      left -= take;
    }
  }
  return shares;
}

}  // namespace sekisho::allocator
