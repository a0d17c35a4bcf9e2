// SPDX-License-Identifier: Apache-2.0
// Parts of a network that recursive bisection cuts: boxes of a grid, runs of leaves of a tree,
// groups of near nodes elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rankmap/network.h"

namespace sekisho::rankmap {

struct Area {
  std::vector<int> low;  // grid: the box
  std::vector<int> sizes;
  std::vector<int> nodes;  // elsewhere: its nodes, in order

  bool operator==(const Area&) const = default;
};

class AreaMap {
 public:
  explicit AreaMap(const Network& network) : network_(network) {}

  Area Whole() const;
  int Nodes(const Area& area) const;
  int AnyNode(const Area& area) const;
  std::vector<int> NodesOf(const Area& area) const;
  // Cuts an area of two or more nodes in two across its longest side.
  void Split(const Area& area, Area& first, Area& second) const;
  // Twice the distance between the middles (or the mean between some nodes).
  int64_t TwiceDistance(const Area& a, const Area& b) const;

 private:
  void SplitTree(const Area& area, Area& first, Area& second) const;
  void SplitMatrix(const Area& area, Area& first, Area& second) const;

  const Network& network_;
};

}  // namespace sekisho::rankmap
