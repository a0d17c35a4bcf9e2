// SPDX-License-Identifier: Apache-2.0
// Searches for the dense quadratic assignment problem: the robust tabu search, an iterated one,
// GRASP as in paper 000, and (auto) a population of tabu-searched placements that are crossed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "rankmap/bisem.h"
#include "rankmap/qap_tabu.h"

namespace sekisho::rankmap {

enum class QapMethod { kAuto, kGrasp, kTabu, kIterated };

class QapSolver {
 public:
  // `instance` outlives this.
  QapSolver(const QapInstance& instance, QapMethod method, uint64_t seed);

  // Some 10 ms of work, longer only where `stop` is asked meanwhile: then nothing has happened.
  void Step(const Stop& stop);

  int64_t moves() const { return moves_ + (is_between_rounds() ? 0 : tabu_.iterations()); }
  int64_t best_cost() const { return best_cost_; }
  const std::vector<int>& best() const { return best_; }

  // Then another thread's find may join the population.
  bool is_between_rounds() const { return stage_ == Stage::kBetween; }
  void Offer(const std::vector<int>& permutation, int64_t cost);

  // All of the search, in mid-round too: who restores it goes on as this one would.
  std::string Save() const;
  absl::Status Restore(std::string_view bytes);

 private:
  enum class Stage : uint8_t { kBetween, kDescending, kSearching };

  struct Member {
    int64_t cost = 0;
    std::vector<int> permutation;
  };

  uint64_t Key() const;
  std::vector<int> RandomPermutation(Random& random) const;
  std::vector<int> Cross(const std::vector<int>& a, const std::vector<int>& b, Random& random) const;
  std::vector<int> Kick(const std::vector<int>& from, int strength, Random& random) const;
  std::vector<int> NextStart(Random& random, const Stop& stop) const;
  bool BeginRound(const Stop& stop);
  void Search();
  void EndRound();
  void Join(const std::vector<int>& permutation, int64_t cost);
  void Renew();
  void Note(const std::vector<int>& permutation, int64_t cost);

  const QapInstance& instance_;
  const QapMethod method_;
  const uint64_t seed_;
  Random random_;
  QapTabu tabu_;
  int n_;

  // What rounds leave to the next.
  int64_t moves_ = 0;
  int64_t round_ = 0;
  int64_t length_ = 0;    // tabu iterations of a round
  int32_t stale_ = 0;     // rounds without a new member
  int32_t strength_ = 3;  // of the next kick
  std::vector<Member> population_;
  std::vector<int> best_;
  int64_t best_cost_ = 0;

  Stage stage_ = Stage::kBetween;
  int64_t chunk_ = 0;  // swaps, or rows of deltas, of some 10 ms
};

}  // namespace sekisho::rankmap
