// SPDX-License-Identifier: Apache-2.0
#include "rankmap/box_anneal.h"

#include <algorithm>
#include <cstdlib>

namespace sekisho::rankmap {
namespace {

constexpr int kCoolEvery = 256;

}  // namespace

BoxAnnealer::BoxAnnealer(const Graph& graph, const Network& network, std::vector<uint32_t> cells)
    : graph_(graph),
      dims_(network.grid().dims),
      n_(cells.size()),
      cells_(std::move(cells)),
      inside_(n_),
      next_(cells_),
      is_moved_(n_),
      low_(dims_.size()),
      sides_(dims_.size()),
      other_(dims_.size()),
      offset_(dims_.size()) {
  distance_.reserve(n_ * n_);
  for (size_t a = 0; a < n_; ++a) {
    for (size_t b = 0; b < n_; ++b) {
      distance_.push_back(
          static_cast<int32_t>(network.Distance(static_cast<int>(a), static_cast<int>(b))));
    }
  }
  for (uint32_t v = 0; v < n_; ++v) {
    inside_[cells_[v]] = v;
    for (const Graph::Arc& arc : graph.Of(v)) {
      cost_ += arc.out * distance_[cells_[v] * n_ + cells_[arc.peer]];
    }
  }
  best_cost_ = cost_;
  best_ = cells_;
}

uint32_t BoxAnnealer::Cell(const std::vector<int>& at) const {
  uint32_t cell = 0;
  for (size_t d = dims_.size(); d-- > 0;) {
    cell = cell * dims_[d] + at[d];
  }
  return cell;
}

void BoxAnnealer::Add(uint32_t from, uint32_t to) {
  if (from != to) {
    moved_.push_back(inside_[from]);
    target_.push_back(to);
  }
}

// Two boxes change places, one is mirrored, or its layers go round.
void BoxAnnealer::DrawBox(Random& random) {
  const size_t dimensions = dims_.size();
  for (size_t d = 0; d < dimensions; ++d) {
    static constexpr int kSides[] = {1, 1, 2, 2, 4, 1, 3, 4};
    sides_[d] = std::min(kSides[random.Below(8)], dims_[d]);
    low_[d] = static_cast<int>(random.Below(dims_[d] - sides_[d] + 1));
    other_[d] = static_cast<int>(random.Below(dims_[d] - sides_[d] + 1));
  }
  const uint32_t kind = random.Below(4);
  const size_t axis = random.Below(static_cast<uint32_t>(dimensions));
  if (kind < 2) {
    bool is_apart = false;
    for (size_t d = 0; d < dimensions; ++d) {
      is_apart = is_apart || std::abs(low_[d] - other_[d]) >= sides_[d];
    }
    if (!is_apart) {
      return;
    }
  }
  std::fill(offset_.begin(), offset_.end(), 0);
  std::vector<int> from(dimensions);
  std::vector<int> to(dimensions);
  while (true) {
    for (size_t d = 0; d < dimensions; ++d) {
      from[d] = low_[d] + offset_[d];
      to[d] = (kind < 2 ? other_[d] : low_[d]) + offset_[d];
    }
    if (kind == 2) {
      to[axis] = low_[axis] + sides_[axis] - 1 - offset_[axis];
    } else if (kind == 3) {
      to[axis] = low_[axis] + (offset_[axis] + 1) % sides_[axis];
    }
    Add(Cell(from), Cell(to));
    if (kind < 2) {
      Add(Cell(to), Cell(from));
    }
    size_t d = 0;
    while (d < dimensions && ++offset_[d] == sides_[d]) {
      offset_[d++] = 0;
    }
    if (d == dimensions) {
      return;
    }
  }
}

void BoxAnnealer::Draw(Random& random) {
  moved_.clear();
  target_.clear();
  if (random.Below(2) == 0) {
    return DrawBox(random);
  }
  const uint32_t a = random.Below(static_cast<uint32_t>(n_));
  const uint32_t b = random.Below(static_cast<uint32_t>(n_));
  Add(a, b);
  Add(b, a);
}

int64_t BoxAnnealer::TwiceDelta() {
  for (size_t i = 0; i < moved_.size(); ++i) {
    is_moved_[moved_[i]] = 1;
    next_[moved_[i]] = target_[i];
  }
  int64_t delta = 0;
  for (const uint32_t v : moved_) {
    const int32_t* before = distance_.data() + cells_[v] * n_;
    const int32_t* after = distance_.data() + next_[v] * n_;
    for (const Graph::Arc& arc : graph_.Of(v)) {
      const int64_t change = after[next_[arc.peer]] - before[cells_[arc.peer]];
      delta += arc.both() * (is_moved_[arc.peer] != 0 ? change : 2 * change);
    }
  }
  for (const uint32_t v : moved_) {
    is_moved_[v] = 0;
  }
  return delta;
}

void BoxAnnealer::Run(int64_t moves, double hot, double cold, Random& random, const Stop& stop) {
  const double factor =
      Exp(Ln(cold / hot) * kCoolEvery / static_cast<double>(std::max<int64_t>(moves, 1)));
  double temperature = hot;
  for (int64_t i = 0; i < moves; ++i) {
    if (i % kCoolEvery == 0) {
      temperature *= factor;
      if (stop()) {
        return;
      }
    }
    Draw(random);
    const int64_t delta = TwiceDelta() / 2;
    if (delta > 0 && static_cast<double>(delta) > temperature * exponential_.Draw(random)) {
      for (const uint32_t v : moved_) {
        next_[v] = cells_[v];
      }
      continue;
    }
    for (const uint32_t v : moved_) {
      cells_[v] = next_[v];
      inside_[cells_[v]] = v;
    }
    cost_ += delta;
    if (cost_ < best_cost_) {
      best_cost_ = cost_;
      best_ = cells_;
    }
  }
}

}  // namespace sekisho::rankmap
