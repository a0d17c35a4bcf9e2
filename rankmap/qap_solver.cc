// SPDX-License-Identifier: Apache-2.0
#include "rankmap/qap_solver.h"

#include <algorithm>
#include <numeric>

#include "rankmap/qap_grasp.h"

namespace sekisho::rankmap {
namespace {

constexpr size_t kPopulation = 12;
constexpr int64_t kShortest = 1000;
constexpr int64_t kLongestFirst = 6000;

}  // namespace

QapSolver::QapSolver(const QapInstance& instance, QapMethod method, uint64_t seed)
    : instance_(instance),
      method_(method),
      seed_(seed),
      random_(seed),
      tabu_(instance),
      n_(instance.size),
      length_(std::clamp<int64_t>(40 * int64_t{instance.size}, kShortest, kLongestFirst)),
      best_(instance.size),
      chunk_(std::max<int64_t>(20000000 / (int64_t{instance.size} * instance.size + 400), 1)) {
  std::iota(best_.begin(), best_.end(), 0);
  best_cost_ = instance.Cost(best_);
}

void QapSolver::Note(const std::vector<int>& permutation, int64_t cost) {
  if (cost < best_cost_) {
    best_cost_ = cost;
    best_ = permutation;
  }
}

std::vector<int> QapSolver::RandomPermutation(Random& random) const {
  std::vector<int> p(n_);
  std::iota(p.begin(), p.end(), 0);
  random.Shuffle(p);
  return p;
}

// What the parents agree on stays; elsewhere each location comes from one of them if still free.
std::vector<int> QapSolver::Cross(const std::vector<int>& a, const std::vector<int>& b,
                                  Random& random) const {
  std::vector<int> child(n_, -1);
  std::vector<char> used(n_);
  for (int i = 0; i < n_; ++i) {
    if (a[i] == b[i]) {
      child[i] = a[i];
      used[a[i]] = 1;
    }
  }
  std::vector<int> order(n_);
  std::iota(order.begin(), order.end(), 0);
  random.Shuffle(order);
  for (const int i : order) {
    if (child[i] < 0) {
      const bool first = (random.Next() >> 63) != 0;
      const int want = first ? a[i] : b[i];
      const int other = first ? b[i] : a[i];
      child[i] = used[want] == 0 ? want : used[other] == 0 ? other : -1;
      if (child[i] >= 0) {
        used[child[i]] = 1;
      }
    }
  }
  std::vector<int> left;
  for (int k = 0; k < n_; ++k) {
    if (used[k] == 0) {
      left.push_back(k);
    }
  }
  random.Shuffle(left);
  for (int i = 0; i < n_; ++i) {
    if (child[i] < 0) {
      child[i] = left.back();
      left.pop_back();
    }
  }
  return child;
}

std::vector<int> QapSolver::Kick(const std::vector<int>& from, int strength, Random& random) const {
  std::vector<int> p = from;
  int last = static_cast<int>(random.Below(n_));
  for (int k = 0; k < strength; ++k) {
    const int next = static_cast<int>(random.Below(n_));
    std::swap(p[last], p[next]);
    last = next;
  }
  return p;
}

// Empty if stopped.
std::vector<int> QapSolver::NextStart(Random& random, const Stop& stop) const {
  if (method_ == QapMethod::kGrasp) {
    return GraspConstruct(instance_, random, stop);
  }
  if (method_ == QapMethod::kTabu) {
    return RandomPermutation(random);
  }
  if (method_ == QapMethod::kIterated) {
    return population_.empty() ? RandomPermutation(random)
                               : Kick(population_[0].permutation, strength_, random);
  }
  // The first rounds look for one good placement before many.
  if (population_.size() < 3 || (population_.size() < kPopulation && round_ % 2 == 1)) {
    return RandomPermutation(random);
  }
  if (round_ % 4 == 0) {
    return Kick(best_, strength_, random);
  }
  const auto size = static_cast<uint32_t>(population_.size());
  const uint32_t a = random.Below(size);
  const uint32_t b = (a + 1 + random.Below(size - 1)) % size;
  return Cross(population_[a].permutation, population_[b].permutation, random);
}

bool QapSolver::BeginRound(const Stop& stop) {
  Random random = random_;  // ours only once there is a start: whoever saves meanwhile repeats it
  const std::vector<int> start = NextStart(random, stop);
  if (start.empty()) {
    return false;
  }
  random_ = random;
  tabu_.Begin(start);
  stage_ = Stage::kDescending;
  return true;
}

void QapSolver::Step(const Stop& stop) {
  if (n_ < 2 || stop()) {
    return;
  }
  if (stage_ == Stage::kBetween && !BeginRound(stop)) {
    return;
  }
  if (!tabu_.Prepare(static_cast<int>(std::min<int64_t>(chunk_, n_)))) {
    return;
  }
  if (stage_ == Stage::kSearching) {
    return Search();
  }
  if (tabu_.Descend(chunk_)) {
    stage_ = Stage::kSearching;
  }
  Note(tabu_.best(), tabu_.best_cost());
}

void QapSolver::Search() {
  if (method_ == QapMethod::kGrasp) {
    return EndRound();
  }
  const int64_t wanted = method_ == QapMethod::kTabu ? INT64_MAX : length_;
  if (const int64_t left = wanted - tabu_.iterations(); left > 0) {
    const int low = std::max(n_ * 9 / 10, 1);
    const int high = std::max(n_ * 11 / 10 + 2, low + 1);
    tabu_.Run(std::min(left, chunk_), low, high, random_);
    Note(tabu_.best(), tabu_.best_cost());
  }
  if (tabu_.iterations() >= wanted) {
    EndRound();
  }
}

void QapSolver::EndRound() {
  const bool is_better = population_.empty() || tabu_.best_cost() < population_[0].cost;
  if (method_ == QapMethod::kIterated) {
    if (population_.empty()) {
      population_.resize(1);
    }
    if (is_better || tabu_.best_cost() == population_[0].cost) {
      population_[0] = {tabu_.best_cost(), tabu_.best()};
    }
  } else if (method_ == QapMethod::kAuto) {
    Join(tabu_.best(), tabu_.best_cost());
  }
  strength_ = is_better || strength_ >= n_ / 2 ? 3 : strength_ + std::max(n_ / 20, 1);
  moves_ += std::max<int64_t>(tabu_.iterations(), 1);
  ++round_;
  stage_ = Stage::kBetween;
}

// Keeps the best few different placements, best first.
void QapSolver::Join(const std::vector<int>& permutation, int64_t cost) {
  for (const Member& member : population_) {
    if (member.cost == cost) {
      if (++stale_ > 2 * static_cast<int>(kPopulation)) {
        Renew();
      }
      return;
    }
  }
  if (population_.size() < kPopulation || cost < population_.back().cost) {
    stale_ = 0;
    const auto at = std::upper_bound(population_.begin(), population_.end(), cost,
                                     [](int64_t c, const Member& m) { return c < m.cost; });
    population_.insert(at, {cost, permutation});
    if (population_.size() > kPopulation) {
      population_.pop_back();
    }
  } else if (++stale_ > 2 * static_cast<int>(kPopulation)) {
    Renew();
  }
}

// The population has converged: only the best stays, and rounds get longer.
void QapSolver::Renew() {
  stale_ = 0;
  population_.resize(1);
  length_ = std::min<int64_t>(length_ * 2, int64_t{1} << 40);
}

void QapSolver::Offer(const std::vector<int>& permutation, int64_t cost) {
  Note(permutation, cost);
  if (method_ == QapMethod::kAuto) {
    Join(permutation, cost);
  } else if (method_ == QapMethod::kIterated && !population_.empty() && cost < population_[0].cost) {
    population_[0] = {cost, permutation};
  }
}

}  // namespace sekisho::rankmap
