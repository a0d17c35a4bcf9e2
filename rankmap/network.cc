// SPDX-License-Identifier: Apache-2.0
#include "rankmap/network.h"

#include <algorithm>
#include <numeric>

#include "rankmap/errors.h"

namespace sekisho::rankmap {
namespace {

constexpr int kMaxDimensions = 8;
constexpr int64_t kMaxDistance = int64_t{1} << 40;

absl::Status CheckGrid(const GridShape& shape) {
  if (shape.dims.empty() || shape.dims.size() > kMaxDimensions) {
    return errors::BadNetwork(
        fmt::format("{} dimensions: expected 1 to {}", shape.dims.size(), kMaxDimensions));
  }
  int64_t nodes = 1;
  for (const int size : shape.dims) {
    if (size < 1 || size > 32767) {
      return errors::BadNetwork(fmt::format("dimension of size {}: expected 1 to 32767", size));
    }
    nodes *= size;
    if (nodes > Network::kMaxNodes) {
      return errors::BadNetwork(fmt::format("more than {} nodes", Network::kMaxNodes));
    }
  }
  std::vector<int> order = shape.order;
  std::sort(order.begin(), order.end());
  for (size_t d = 0; d < order.size(); ++d) {
    if (order[d] != static_cast<int>(d)) {
      return errors::BadNetwork("the routing order must name every dimension once");
    }
  }
  if (order.size() != shape.dims.size() || shape.wrap.size() != shape.dims.size()) {
    return errors::BadNetwork("routing order and wrap must fit the dimensions");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Network> Network::MakeGrid(GridShape shape) {
  if (shape.order.empty()) {
    shape.order.resize(shape.dims.size());
    std::iota(shape.order.begin(), shape.order.end(), 0);
  }
  RETURN_IF_ERROR(CheckGrid(shape));

  Network network;
  network.kind_ = Kind::kGrid;
  network.grid_ = std::move(shape);
  const std::vector<int>& dims = network.grid_.dims;
  const int dimensions = static_cast<int>(dims.size());
  network.nodes_ = std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>());
  network.links_ = network.nodes_ * dimensions * 2;
  network.coordinates_.resize(static_cast<size_t>(network.nodes_) * dimensions);
  network.next_.resize(network.links_);
  for (int d = 0, stride = 1; d < dimensions; stride *= dims[d], ++d) {
    network.wraps_.push_back(network.grid_.wrap[d]);
    network.diameter_ += network.grid_.wrap[d] ? dims[d] / 2 : dims[d] - 1;
    for (int node = 0; node < network.nodes_; ++node) {
      const int c = node / stride % dims[d];
      network.coordinates_[static_cast<size_t>(node) * dimensions + d] = static_cast<int16_t>(c);
      const int link = (node * dimensions + d) * 2;
      network.next_[link] = node + (c + 1 == dims[d] ? -c : 1) * stride;
      network.next_[link + 1] = node + (c == 0 ? dims[d] - 1 : -1) * stride;
    }
  }
  return network;
}

absl::StatusOr<Network> Network::MakeTree(std::vector<TreeLevel> levels) {
  if (levels.empty() || levels.size() > 16) {
    return errors::BadNetwork(fmt::format("{} tree levels: expected 1 to 16", levels.size()));
  }
  Network network;
  network.kind_ = Kind::kTree;
  int64_t nodes = 1;
  int64_t links = 0;
  for (const TreeLevel& level : levels) {
    if (level.arity < 1 || level.width < 1 || level.width > 4096 || level.distance < 0 ||
        level.distance > kMaxDistance) {
      return errors::BadNetwork(
          "tree level: arity and width from 1 (width to 4096), distance from 0");
    }
    nodes *= level.arity;
    if (nodes > kMaxNodes || nodes * level.width > kMaxNodes) {
      return errors::BadNetwork(fmt::format("tree with more than {} nodes or links", kMaxNodes));
    }
    network.first_link_.push_back(static_cast<int>(links));
    links += nodes * level.width * 2;
    network.diameter_ += 2 * level.distance;
  }
  network.nodes_ = static_cast<int>(nodes);
  network.links_ = static_cast<int>(links);
  network.below_.resize(levels.size());
  int below = 1;
  for (size_t l = levels.size(); l-- > 0;) {
    network.below_[l] = below;
    below *= levels[l].arity;
  }
  network.levels_ = std::move(levels);
  return network;
}

absl::StatusOr<Network> Network::MakeMatrix(int nodes, std::vector<int64_t> distances) {
  if (nodes < 1 || nodes > kMaxMatrixNodes ||
      distances.size() != static_cast<size_t>(nodes) * nodes) {
    return errors::BadNetwork(
        fmt::format("distance matrix: expected n x n numbers, n from 1 to {}", kMaxMatrixNodes));
  }
  Network network;
  for (int a = 0; a < nodes; ++a) {
    for (int b = 0; b < nodes; ++b) {
      const int64_t distance = distances[static_cast<size_t>(a) * nodes + b];
      if (distance < 0 || distance > kMaxDistance) {
        return errors::BadNetwork(
            fmt::format("distance {} -> {} is {}: expected 0 to 2^40", a, b, distance));
      }
      network.diameter_ = std::max(network.diameter_, distance);
      network.is_symmetric_ &= distance == distances[static_cast<size_t>(b) * nodes + a];
    }
  }
  network.nodes_ = nodes;
  network.distances_ = std::move(distances);
  return network;
}

absl::Status Network::set_capacity(int capacity) {
  if (capacity < 1 || static_cast<int64_t>(capacity) * nodes_ > kMaxNodes) {
    return errors::BadNetwork(fmt::format(
        "capacity {}: expected 1 or more, at most {} slots in all", capacity, kMaxNodes));
  }
  capacity_ = capacity;
  return absl::OkStatus();
}

int64_t Network::Distance(int from, int to) const {
  if (kind_ == Kind::kMatrix) {
    return distances_[static_cast<size_t>(from) * nodes_ + to];
  }
  int64_t distance = 0;
  if (kind_ == Kind::kGrid) {
    for (int d = 0; d < static_cast<int>(grid_.dims.size()); ++d) {
      int direction = 0;
      distance += Steps(Coordinate(from, d), Coordinate(to, d), d, direction);
    }
    return distance;
  }
  for (size_t l = levels_.size(); l-- > 0 && from / below_[l] != to / below_[l];) {
    distance += 2 * levels_[l].distance;
  }
  return distance;
}

uint64_t Network::Hash() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](uint64_t word) { hash = (hash ^ word) * 0x100000001b3 + (hash >> 29); };
  mix(static_cast<uint64_t>(kind_));
  mix(nodes_);
  mix(capacity_);
  for (size_t d = 0; d < grid_.dims.size(); ++d) {
    mix(grid_.dims[d]);
    mix(grid_.wrap[d]);
    mix(grid_.order[d]);
  }
  mix(static_cast<uint64_t>(grid_.tie));
  for (const TreeLevel& level : levels_) {
    mix(level.arity);
    mix(level.distance);
    mix(level.width);
  }
  for (const int64_t distance : distances_) {
    mix(distance);
  }
  return hash;
}

}  // namespace sekisho::rankmap
