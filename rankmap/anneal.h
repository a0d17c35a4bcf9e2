// SPDX-License-Identifier: Apache-2.0
// Simulated annealing by swaps, in chunks: on sum weight * distance, and on smooth link loads.  The
// caller owns temperature, randomness and clock; a chunk is a pure function of its arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmap/evaluate.h"
#include "rankmap/hop_cost.h"
#include "rankmap/link_loads.h"
#include "rankmap/near.h"
#include "rankmap/random.h"

namespace sekisho::rankmap {

// Proposes swaps: a rank goes next to one of those it talks to.
class Proposer {
 public:
  // All outlive this.
  Proposer(const Graph& graph, const NearNodes& near);

  // False if there is nothing to swap.
  bool Draw(const Placement& placement, Random& random, uint32_t& a, uint32_t& b) const {
    if (active_.empty()) {
      return false;
    }
    a = active_[random.Below(static_cast<uint32_t>(active_.size()))];
    const auto arcs = graph_.Of(a);
    const uint32_t peer = arcs[random.Below(static_cast<uint32_t>(arcs.size()))].peer;
    b = placement.rank_in(near_.Draw(placement.slot_of(peer), random));
    return a != b;
  }

 private:
  const Graph& graph_;
  const NearNodes& near_;
  std::vector<uint32_t> active_;  // ranks that talk
};

class HopAnnealer {
 public:
  HopAnnealer(const Graph& graph, const Network& network, const NearNodes& near,
              Placement placement);

  // `moves` proposals, the temperature falling geometrically from `hot` to `cold` (in graph.unit).
  void Chunk(int moves, double hot, double cold, Random& random);

  const HopCost& state() const { return state_; }
  void Reset(Placement placement) {
    state_.Reset(std::move(placement));
    best_cost_ = state_.cost();
    best_ = state_.placement();
  }
  // Both as an earlier object had them between two chunks.
  void Restore(Placement current, Placement best) {
    Reset(std::move(best));
    state_.Reset(std::move(current));
  }
  int64_t best_cost() const { return best_cost_; }
  const Placement& best() const { return best_; }

 private:
  Proposer proposer_;
  HopCost state_;
  int64_t best_cost_;
  Placement best_;
  ExponentialTable exponential_;
};

struct LinkAnnealOptions {
  Objective objective = Objective::kMaxLink;
  int range = 0;      // OPTIM: swaps inside a random box of that side; 0: next to a partner
  int num_swaps = 2;  // OPTIM: ranks exchanged at once
};

class LinkAnnealer {
 public:
  LinkAnnealer(const Pattern& pattern, const Graph& graph, const Network& network,
               const NearNodes& near, const LinkAnnealOptions& options, Placement placement);

  // As above; temperatures are relative changes of the objective.
  void Chunk(int moves, double hot, double cold, int power, Random& random);

  const LinkLoads& state() const { return state_; }
  void Reset(Placement placement);
  void Restore(Placement current, Placement best) {
    Reset(std::move(best));
    state_.Reset(std::move(current));
  }
  double best_value() const { return best_value_; }
  const Placement& best() const { return best_; }

 private:
  bool Draw(Random& random);
  double Exact() const;

  const Network& network_;
  LinkAnnealOptions options_;
  Proposer proposer_;
  LinkLoads state_;
  std::vector<uint32_t> cycle_;
  double best_value_ = 0;
  Placement best_;
  ExponentialTable exponential_;
};

}  // namespace sekisho::rankmap
