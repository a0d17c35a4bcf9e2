// SPDX-License-Identifier: Apache-2.0
// sum weight * distance with exact incremental evaluation of a swap: O(arcs of the two ranks), no
// distance matrix but for small networks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/placement.h"

namespace sekisho::rankmap {

// Distances between slots, chosen once: three packed coordinates and tables for grids (more dimensions share
// them), a dense matrix for small networks, else Network::Distance.
class SlotDistances {
 public:
  explicit SlotDistances(const Network& network);

  enum class Mode { kGrid, kDense, kOther };
  Mode mode() const { return mode_; }

  int64_t Grid(uint32_t a, uint32_t b) const {
    const Point& p = points_[a];
    const Point& q = points_[b];
    return table_[0][p.c[0] - q.c[0] + shift_[0]] + table_[1][p.c[1] - q.c[1] + shift_[1]] +
           table_[2][p.c[2] - q.c[2] + shift_[2]];
  }
  int64_t Dense(uint32_t a, uint32_t b) const { return dense_[node_[a] * nodes_ + node_[b]]; }
  int64_t Other(uint32_t a, uint32_t b) const { return network_.Distance(node_[a], node_[b]); }
  int64_t Get(uint32_t a, uint32_t b) const {
    return mode_ == Mode::kGrid ? Grid(a, b) : mode_ == Mode::kDense ? Dense(a, b) : Other(a, b);
  }

 private:
  bool MakeTables();  // false if coordinates are too large

  struct Point {
    std::array<int16_t, 4> c{};
  };

  const Network& network_;
  Mode mode_ = Mode::kOther;
  size_t nodes_ = 0;
  std::array<int, 3> shift_{};
  std::array<std::vector<int>, 3> table_;
  std::vector<Point> points_;   // by slot
  std::vector<uint32_t> node_;  // by slot
  std::vector<int64_t> dense_;
};

class HopCost {
 public:
  // `graph` has network.slots() vertices, as the placement; both outlive this.
  HopCost(const Graph& graph, const Network& network, Placement placement);

  int64_t cost() const { return cost_; }  // in graph.unit
  const Placement& placement() const { return placement_; }
  void Reset(Placement placement);

  // What Swap(a, b) would add to the cost.
  int64_t Delta(uint32_t a, uint32_t b) const;
  void Swap(uint32_t a, uint32_t b, int64_t delta) {
    placement_.Swap(a, b);
    cost_ += delta;
  }
  int64_t Full() const;

 private:
  // Symmetric distances need one weight an arc, and most patterns fit 32 bits: half the cache.
  struct Narrow {
    uint32_t peer;
    uint32_t weight;
  };
  template <typename Arc, typename Distance>
  int64_t SymmetricDelta(const std::vector<Arc>& arcs, uint32_t a, uint32_t b,
                         Distance distance) const;
  template <typename Distance>
  int64_t DirectedDelta(uint32_t a, uint32_t b, Distance distance) const;
  template <typename Distance>
  int64_t DeltaBy(uint32_t a, uint32_t b, Distance distance) const;

  struct Wide {
    uint32_t peer;
    int64_t weight;
  };

  const Graph& graph_;
  bool is_symmetric_;
  SlotDistances distances_;
  Placement placement_;
  int64_t cost_ = 0;
  std::vector<Narrow> narrow_;
  std::vector<Wide> wide_;
};

}  // namespace sekisho::rankmap
