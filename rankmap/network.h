// SPDX-License-Identifier: Apache-2.0
// Where ranks can go: tori and meshes of any dimension, trees, and plain distance matrices.  A node
// has `capacity` slots; slot s is on node s / capacity.
#pragma once

#include <cstdint>
#include <vector>

#include "common/status.h"

namespace sekisho::rankmap {

enum class Tie { kPlus, kMinus, kParity };  // which way exactly half round; parity: plus from even

struct GridShape {
  std::vector<int> dims;   // x first; node = x + X * (y + Y * z)
  std::vector<bool> wrap;  // per dimension: ring or line
  std::vector<int> order;  // routing order, default x, y, z
  Tie tie = Tie::kPlus;
};

struct TreeLevel {
  int arity = 1;
  int64_t distance = 1;  // of one link between this level and the one above
  int width = 1;         // parallel links; the target's number chooses (d-mod-k)
};

class Network {
 public:
  enum class Kind { kGrid, kTree, kMatrix };
  static constexpr int kMaxNodes = 1 << 22;
  static constexpr int kMaxMatrixNodes = 8192;

  static absl::StatusOr<Network> MakeGrid(GridShape shape);
  static absl::StatusOr<Network> MakeTree(std::vector<TreeLevel> levels);  // from the root down
  static absl::StatusOr<Network> MakeMatrix(int nodes, std::vector<int64_t> distances);

  absl::Status set_capacity(int capacity);
  // Bytes a second and seconds a hop, for simulated times only.
  double bandwidth = 5e9;
  double latency = 120e-9;

  Kind kind() const { return kind_; }
  int nodes() const { return nodes_; }
  int capacity() const { return capacity_; }
  int slots() const { return nodes_ * capacity_; }
  const GridShape& grid() const { return grid_; }
  const std::vector<TreeLevel>& levels() const { return levels_; }
  int Coordinate(int node, int dimension) const {
    return coordinates_[static_cast<size_t>(node) * grid_.dims.size() + dimension];
  }

  int64_t Distance(int from, int to) const;
  int64_t diameter() const { return diameter_; }
  bool is_symmetric() const { return is_symmetric_; }

  // Directed links, 0 for distance matrices.  Grid: (node * dimensions + dimension) * 2 + (0 plus,
  // 1 minus).
  int links() const { return links_; }

  // Calls visit(link) for each link of the route.
  template <typename Visit>
  void Route(int from, int to, Visit&& visit) const {
    if (kind_ == Kind::kGrid) {
      GridRoute(from, to, visit);
    } else if (kind_ == Kind::kTree) {
      TreeRoute(from, to, visit);
    }
  }

  // Between two coordinates of `dimension`; `direction`: 0 for plus, 1 for minus.
  int Steps(int from, int to, int dimension, int& direction) const {
    int delta = to - from;
    const int size = grid_.dims[dimension];
    if (!wraps_[dimension]) {
      direction = delta < 0;
      return delta < 0 ? -delta : delta;
    }
    delta += delta < 0 ? size : 0;
    direction = 2 * delta > size || (2 * delta == size && TieIsMinus(from));
    return direction == 1 ? size - delta : delta;
  }

  uint64_t Hash() const;

 private:
  bool TieIsMinus(int from) const {
    return grid_.tie == Tie::kMinus || (grid_.tie == Tie::kParity && from % 2 == 1);
  }

  template <typename Visit>
  void GridRoute(int from, int to, Visit&& visit) const {
    const int dimensions = static_cast<int>(grid_.dims.size());
    int node = from;
    for (const int d : grid_.order) {
      const int a = Coordinate(from, d);
      const int b = Coordinate(to, d);
      if (a == b) {
        continue;
      }
      int direction = 0;
      for (int steps = Steps(a, b, d, direction); steps > 0; --steps) {
        const int link = (node * dimensions + d) * 2 + direction;
        visit(link);
        node = next_[link];
      }
    }
  }

  template <typename Visit>
  void TreeRoute(int from, int to, Visit&& visit) const {
    for (int l = static_cast<int>(levels_.size()) - 1; l >= 0; --l) {
      const int up = from / below_[l];
      const int down = to / below_[l];
      if (up == down) {
        return;
      }
      const int lane = to % levels_[l].width;
      visit(first_link_[l] + (up * levels_[l].width + lane) * 2);
      visit(first_link_[l] + (down * levels_[l].width + lane) * 2 + 1);
    }
  }

  Kind kind_ = Kind::kMatrix;
  int nodes_ = 0;
  int capacity_ = 1;
  int links_ = 0;
  int64_t diameter_ = 0;
  bool is_symmetric_ = true;
  GridShape grid_;
  std::vector<char> wraps_;
  std::vector<int16_t> coordinates_;
  std::vector<int> next_;  // by link: the node at its end
  std::vector<TreeLevel> levels_;
  std::vector<int> below_;       // leaves below one subtree of the level
  std::vector<int> first_link_;  // by level
  std::vector<int64_t> distances_;
};

}  // namespace sekisho::rankmap
