// SPDX-License-Identifier: Apache-2.0
#include "rankmap/anneal.h"

#include <algorithm>

namespace sekisho::rankmap {
namespace {

constexpr int kCoolEvery = 64;
// How much a relative change of the hops counts beside one of the loads: it breaks ties.
constexpr double kHopShare = 0.02;

double StepFactor(int moves, double hot, double cold) {
  const int steps = std::max(moves / kCoolEvery, 1);
  return hot <= 0 || cold <= 0 ? 1.0 : Exp(Ln(cold / hot) / steps);
}

// Both factors of RMATT's product weigh the same.
LoadShares SharesOf(Objective objective) {
  return objective == Objective::kRmatt ? LoadShares{.hops = 1} : LoadShares{.loads = kHopShare};
}

}  // namespace

Proposer::Proposer(const Graph& graph, const NearNodes& near) : graph_(graph), near_(near) {
  for (int v = 0; v < graph.size(); ++v) {
    if (!graph.Of(v).empty()) {
      active_.push_back(v);
    }
  }
}

HopAnnealer::HopAnnealer(const Graph& graph, const Network& network, const NearNodes& near,
                         Placement placement)
    : proposer_(graph, near),
      state_(graph, network, placement),
      best_cost_(state_.cost()),
      best_(std::move(placement)) {}

void HopAnnealer::Chunk(int moves, double hot, double cold, Random& random) {
  const double factor = StepFactor(moves, hot, cold);
  double temperature = hot;
  bool is_best = state_.cost() < best_cost_;
  for (int i = 0; i < moves; ++i) {
    if (i % kCoolEvery == 0 && i > 0) {
      temperature *= factor;
    }
    uint32_t a = 0;
    uint32_t b = 0;
    if (!proposer_.Draw(state_.placement(), random, a, b)) {
      continue;
    }
    const int64_t delta = state_.Delta(a, b);
    if (delta > 0) {
      if (static_cast<double>(delta) > temperature * exponential_.Draw(random)) {
        continue;
      }
      if (is_best) {  // about to leave the best so far
        best_ = state_.placement();
        best_cost_ = state_.cost();
        is_best = false;
      }
    }
    state_.Swap(a, b, delta);
    is_best = is_best || state_.cost() < best_cost_;
  }
  if (is_best) {
    best_ = state_.placement();
    best_cost_ = state_.cost();
  }
}

LinkAnnealer::LinkAnnealer(const Pattern& pattern, const Graph& graph, const Network& network,
                           const NearNodes& near, const LinkAnnealOptions& options,
                           Placement placement)
    : network_(network),
      options_(options),
      proposer_(graph, near),
      state_(pattern, network, options.objective == Objective::kSteps, placement, SharesOf(options.objective)) {
  Reset(std::move(placement));
}

void LinkAnnealer::Reset(Placement placement) {
  state_.Reset(placement);
  best_ = std::move(placement);
  best_value_ = Exact();
}

double LinkAnnealer::Exact() const {
  const double loads = static_cast<double>(state_.max_link());
  return options_.objective == Objective::kRmatt ? loads * static_cast<double>(state_.hops_sum())
                                                 : loads;
}

bool LinkAnnealer::Draw(Random& random) {
  cycle_.clear();
  if (options_.range <= 0 || network_.kind() != Network::Kind::kGrid) {
    uint32_t a = 0;
    uint32_t b = 0;
    const bool found = proposer_.Draw(state_.placement(), random, a, b);
    cycle_ = {a, b};
    return found;
  }
  // A box of side `range` around a random node, and ranks in it.
  const auto& dims = network_.grid().dims;
  const int corner = static_cast<int>(random.Below(network_.nodes()));
  for (int k = 0; k < options_.num_swaps; ++k) {
    int node = 0;
    for (size_t d = dims.size(); d-- > 0;) {
      const int c = network_.Coordinate(corner, static_cast<int>(d)) +
                    static_cast<int>(random.Below(std::min(options_.range, dims[d])));
      node = node * dims[d] + c % dims[d];
    }
    const uint32_t slot = node * network_.capacity() + random.Below(network_.capacity());
    const uint32_t rank = state_.placement().rank_in(slot);
    if (std::find(cycle_.begin(), cycle_.end(), rank) == cycle_.end()) {
      cycle_.push_back(rank);
    }
  }
  return cycle_.size() > 1;
}

void LinkAnnealer::Chunk(int moves, double hot, double cold, int power, Random& random) {
  state_.set_power(power);
  if (state_.smooth() <= 0) {
    return;  // nothing crosses any link
  }
  const double factor = StepFactor(moves, hot, cold);
  double temperature = hot;
  for (int i = 0; i < moves; ++i) {
    if (i % kCoolEvery == 0 && i > 0) {
      temperature *= factor;
    }
    if (!Draw(random)) {
      continue;
    }
    const double most = temperature * exponential_.Draw(random);
    if (state_.TryCycle(cycle_, most) > most) {
      continue;
    }
    state_.Commit();
    if (const double value = Exact(); value < best_value_) {
      best_value_ = value;
      best_ = state_.placement();
    }
    if (state_.smooth() <= 0) {
      return;
    }
  }
}

}  // namespace sekisho::rankmap
