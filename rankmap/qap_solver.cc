// SPDX-License-Identifier: Apache-2.0
#include "rankmap/qap_solver.h"

#include <algorithm>
#include <numeric>

#include "rankmap/archive.h"
#include "rankmap/errors.h"
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

std::vector<int> QapSolver::RandomPermutation() {
  std::vector<int> p(n_);
  std::iota(p.begin(), p.end(), 0);
  random_.Shuffle(p);
  return p;
}

// What the parents agree on stays; elsewhere each location comes from one of them if still free.
std::vector<int> QapSolver::Cross(const std::vector<int>& a, const std::vector<int>& b) {
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
  random_.Shuffle(order);
  for (const int i : order) {
    if (child[i] < 0) {
      const bool first = (random_.Next() >> 63) != 0;
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
  random_.Shuffle(left);
  for (int i = 0; i < n_; ++i) {
    if (child[i] < 0) {
      child[i] = left.back();
      left.pop_back();
    }
  }
  return child;
}

std::vector<int> QapSolver::Kick(const std::vector<int>& from, int strength) {
  std::vector<int> p = from;
  int last = static_cast<int>(random_.Below(n_));
  for (int k = 0; k < strength; ++k) {
    const int next = static_cast<int>(random_.Below(n_));
    std::swap(p[last], p[next]);
    last = next;
  }
  return p;
}

std::vector<int> QapSolver::NextStart() {
  if (method_ == QapMethod::kGrasp) {
    return GraspConstruct(instance_, random_);
  }
  if (method_ == QapMethod::kTabu) {
    return RandomPermutation();
  }
  if (method_ == QapMethod::kIterated) {
    return round_ == 0 ? RandomPermutation() : Kick(population_[0].permutation, strength_);
  }
  // The first rounds look for one good placement before many.
  if (population_.size() < 3 || (population_.size() < kPopulation && round_ % 2 == 1)) {
    return RandomPermutation();
  }
  if (round_ % 4 == 0) {
    return Kick(best_, strength_);
  }
  const auto size = static_cast<uint32_t>(population_.size());
  const uint32_t a = random_.Below(size);
  const uint32_t b = (a + 1 + random_.Below(size - 1)) % size;
  return Cross(population_[a].permutation, population_[b].permutation);
}

void QapSolver::BeginRound() {
  saved_ = Save();
  tabu_.Start(NextStart());
  tabu_.Descend();
  is_in_round_ = true;
  tabu_moves_ = tabu_.iterations();
}

void QapSolver::Step(const Stop& stop) {
  if (n_ < 2 || stop()) {
    return;
  }
  if (!is_in_round_) {
    BeginRound();
    Note(tabu_.best(), tabu_.best_cost());
    return;
  }
  if (method_ == QapMethod::kGrasp) {
    return EndRound();
  }
  const int64_t wanted = method_ == QapMethod::kTabu ? INT64_MAX : length_;
  const int64_t left = wanted - tabu_moves_;
  if (left > 0) {
    const int low = std::max(n_ * 9 / 10, 1);
    const int high = std::max(n_ * 11 / 10 + 2, low + 1);
    tabu_.Run(std::min(left, chunk_), low, high, random_);
    tabu_moves_ = tabu_.iterations();
    Note(tabu_.best(), tabu_.best_cost());
  }
  if (tabu_moves_ >= wanted) {
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
  moves_ += std::max<int64_t>(tabu_moves_, 1);
  tabu_moves_ = 0;
  ++round_;
  is_in_round_ = false;
  saved_.clear();
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
  }
}

uint64_t QapSolver::Key() const {
  uint64_t key = seed_ * 31 + static_cast<uint64_t>(method_);
  for (const std::vector<int64_t>* matrix : {&instance_.a, &instance_.b}) {
    for (const int64_t value : *matrix) {
      key = (key ^ value) * 0x100000001b3 + (key >> 31);
    }
  }
  return key;
}

std::string QapSolver::Save() const {
  if (is_in_round_) {
    return saved_;
  }
  ArchiveWriter out;
  out.Put(Key());
  out.Put(random_.state());
  out.Put(moves_);
  out.Put(round_);
  out.Put(length_);
  out.Put(stale_);
  out.Put(strength_);
  out.Put(best_cost_);
  out.PutList(best_);
  out.Put<uint64_t>(population_.size());
  for (const Member& member : population_) {
    out.Put(member.cost);
    out.PutList(member.permutation);
  }
  return std::move(out).Finish();
}

absl::Status QapSolver::Restore(std::string_view bytes) {
  ArchiveReader in(bytes);
  if (!in.is_good() || in.Get<uint64_t>() != Key()) {
    return errors::BadCheckpoint("damaged, or made for another instance, method or seed");
  }
  const auto state = in.Get<std::array<uint64_t, 4>>();
  const auto moves = in.Get<int64_t>();
  const auto round = in.Get<int64_t>();
  const auto length = in.Get<int64_t>();
  const auto stale = in.Get<int32_t>();
  const auto strength = in.Get<int32_t>();
  std::vector<Member> members(1);
  members[0].cost = in.Get<int64_t>();
  members[0].permutation = in.GetList<int>();
  const auto count = in.Get<uint64_t>();
  for (uint64_t i = 0; i < count && in.is_good() && count <= kPopulation; ++i) {
    Member member;
    member.cost = in.Get<int64_t>();
    member.permutation = in.GetList<int>();
    members.push_back(std::move(member));
  }
  for (const Member& member : members) {
    std::vector<int> sorted = member.permutation;
    std::sort(sorted.begin(), sorted.end());
    bool is_good = static_cast<int>(sorted.size()) == n_;
    for (int i = 0; is_good && i < n_; ++i) {
      is_good = sorted[i] == i;
    }
    if (!is_good) {
      return errors::BadCheckpoint("damaged");
    }
  }
  if (!in.is_finished() || length < 1) {
    return errors::BadCheckpoint("damaged");
  }
  random_.set_state(state);
  moves_ = moves;
  round_ = round;
  length_ = length;
  stale_ = stale;
  strength_ = strength;
  best_cost_ = members[0].cost;
  best_ = std::move(members[0].permutation);
  population_.assign(members.begin() + 1, members.end());
  is_in_round_ = false;
  tabu_moves_ = 0;
  return absl::OkStatus();
}

}  // namespace sekisho::rankmap
