// SPDX-License-Identifier: Apache-2.0
#include "rankmap/hop_cost.h"

#include <algorithm>
#include <limits>

namespace sekisho::rankmap {
namespace {

constexpr int kMaxDenseNodes = 512;

// Dimensions that share a table: the place of each in their common number, so that a difference of two numbers says the
// difference of each coordinate.
class Axis {
 public:
  // Takes one more, if numbers stay small.
  bool Add(int size, bool wraps) {
    const int64_t width = static_cast<int64_t>(lengths_.size()) * (2 * size - 1);
    if (width > kMostDifferences) {
      return false;
    }
    stride_.push_back(static_cast<int>(lengths_.size()));
    std::vector<int> lengths;
    for (int delta = 1 - size; delta < size; ++delta) {
      const int far = delta < 0 ? -delta : delta;
      for (const int length : lengths_) {
        lengths.push_back(length + (wraps ? std::min(far, size - far) : far));
      }
    }
    lengths_ = std::move(lengths);
    return true;
  }

  int stride(size_t i) const { return stride_[i]; }
  const std::vector<int>& lengths() const { return lengths_; }  // by difference, none in the middle

 private:
  static constexpr int64_t kMostDifferences = 1 << 16;  // half of them either way

  std::vector<int> stride_;
  std::vector<int> lengths_ = {0};
};

}  // namespace

SlotDistances::SlotDistances(const Network& network) : network_(network), nodes_(network.nodes()) {
  if (network.kind() == Network::Kind::kGrid && MakeTables()) {
    mode_ = Mode::kGrid;
    return;
  }
  node_.resize(network.slots());
  for (int slot = 0; slot < network.slots(); ++slot) {
    node_[slot] = slot / network.capacity();
  }
  if (network.nodes() <= kMaxDenseNodes) {
    mode_ = Mode::kDense;
    dense_.reserve(nodes_ * nodes_);
    for (size_t a = 0; a < nodes_; ++a) {
      for (size_t b = 0; b < nodes_; ++b) {
        dense_.push_back(network.Distance(static_cast<int>(a), static_cast<int>(b)));
      }
    }
  }
}

bool SlotDistances::MakeTables() {
  const std::vector<int>& dims = network_.grid().dims;
  const size_t axes = table_.size();
  std::array<Axis, 3> axis;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (!axis[d % axes].Add(dims[d], network_.grid().wrap[d])) {
      return false;
    }
  }
  for (size_t i = 0; i < axes; ++i) {
    table_[i] = axis[i].lengths();
    shift_[i] = static_cast<int>(table_[i].size() / 2);
  }
  points_.resize(network_.slots());
  for (int slot = 0; slot < network_.slots(); ++slot) {
    for (size_t d = 0; d < dims.size(); ++d) {
      const int at = network_.Coordinate(slot / network_.capacity(), static_cast<int>(d));
      points_[slot].c[d % axes] = static_cast<int16_t>(points_[slot].c[d % axes] + at * axis[d % axes].stride(d / axes));
    }
  }
  return true;
}

HopCost::HopCost(const Graph& graph, const Network& network, Placement placement)
    : graph_(graph), is_symmetric_(network.is_symmetric()), distances_(network) {
  if (is_symmetric_) {
    const bool fits = std::all_of(graph.arcs.begin(), graph.arcs.end(), [](const Graph::Arc& arc) {
      return arc.both() <= std::numeric_limits<uint32_t>::max();
    });
    for (const Graph::Arc& arc : graph.arcs) {
      if (fits) {
        narrow_.push_back({arc.peer, static_cast<uint32_t>(arc.both())});
      } else {
        wide_.push_back({arc.peer, arc.both()});
      }
    }
  }
  Reset(std::move(placement));
}

void HopCost::Reset(Placement placement) {
  placement_ = std::move(placement);
  cost_ = Full();
}

int64_t HopCost::Full() const {
  int64_t cost = 0;
  for (int v = 0; v < graph_.size(); ++v) {
    for (const Graph::Arc& arc : graph_.Of(v)) {
      if (arc.out > 0) {
        cost += arc.out * distances_.Get(placement_.slot_of(v), placement_.slot_of(arc.peer));
      }
    }
  }
  return cost;
}

template <typename Arc, typename Distance>
int64_t HopCost::SymmetricDelta(const std::vector<Arc>& arcs, uint32_t a, uint32_t b,
                                Distance distance) const {
  const uint32_t* slots = placement_.slots().data();
  const uint32_t pa = slots[a];
  const uint32_t pb = slots[b];
  int64_t delta = 0;
  for (uint32_t i = graph_.offsets[a]; i < graph_.offsets[a + 1]; ++i) {
    const Arc& arc = arcs[i];
    if (arc.peer != b) {
      const uint32_t p = slots[arc.peer];
      delta += static_cast<int64_t>(arc.weight) * (distance(pb, p) - distance(pa, p));
    }
  }
  for (uint32_t i = graph_.offsets[b]; i < graph_.offsets[b + 1]; ++i) {
    const Arc& arc = arcs[i];
    if (arc.peer != a) {
      const uint32_t p = slots[arc.peer];
      delta += static_cast<int64_t>(arc.weight) * (distance(pa, p) - distance(pb, p));
    }
  }
  return delta;
}

template <typename Distance>
int64_t HopCost::DirectedDelta(uint32_t a, uint32_t b, Distance distance) const {
  const uint32_t pa = placement_.slot_of(a);
  const uint32_t pb = placement_.slot_of(b);
  int64_t delta = 0;
  for (const Graph::Arc& arc : graph_.Of(a)) {
    if (arc.peer == b) {
      delta += (arc.out - arc.in) * (distance(pb, pa) - distance(pa, pb));
    } else {
      const uint32_t p = placement_.slot_of(arc.peer);
      delta += arc.out * (distance(pb, p) - distance(pa, p)) +
               arc.in * (distance(p, pb) - distance(p, pa));
    }
  }
  for (const Graph::Arc& arc : graph_.Of(b)) {
    if (arc.peer != a) {
      const uint32_t p = placement_.slot_of(arc.peer);
      delta += arc.out * (distance(pa, p) - distance(pb, p)) +
               arc.in * (distance(p, pa) - distance(p, pb));
    }
  }
  return delta;
}

template <typename Distance>
int64_t HopCost::DeltaBy(uint32_t a, uint32_t b, Distance distance) const {
  if (!is_symmetric_) {
    return DirectedDelta(a, b, distance);
  }
  return wide_.empty() ? SymmetricDelta(narrow_, a, b, distance)
                       : SymmetricDelta(wide_, a, b, distance);
}

int64_t HopCost::Delta(uint32_t a, uint32_t b) const {
  switch (distances_.mode()) {
    case SlotDistances::Mode::kGrid:
      return DeltaBy(a, b, [this](uint32_t p, uint32_t q) { return distances_.Grid(p, q); });
    case SlotDistances::Mode::kDense:
      return DeltaBy(a, b, [this](uint32_t p, uint32_t q) { return distances_.Dense(p, q); });
    default:
      return DeltaBy(a, b, [this](uint32_t p, uint32_t q) { return distances_.Other(p, q); });
  }
}

}  // namespace sekisho::rankmap
