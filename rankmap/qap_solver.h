// SPDX-License-Identifier: Apache-2.0
// Searches for the dense quadratic assignment problem: the robust tabu search, an iterated one,
// GRASP as in paper 000, and (auto) a population of tabu-searched placements that are crossed.
#pragma once

#include <cstdint>
#include <functional>
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

  // Some 10 ms of work.
  void Step(const Stop& stop);

  int64_t moves() const { return moves_ + tabu_moves_; }
  int64_t best_cost() const { return best_cost_; }
  const std::vector<int>& best() const { return best_; }

  // Another thread's find joins the population.
  void Offer(const std::vector<int>& permutation, int64_t cost);

  // The state before the round under way, which a resumed search repeats.
  std::string Save() const;
  absl::Status Restore(std::string_view bytes);

 private:
  struct Member {
    int64_t cost = 0;
    std::vector<int> permutation;
  };

  uint64_t Key() const;
  std::vector<int> RandomPermutation();
  std::vector<int> Cross(const std::vector<int>& a, const std::vector<int>& b);
  std::vector<int> Kick(const std::vector<int>& from, int strength);
  std::vector<int> NextStart();
  void BeginRound();
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

  // State between rounds.
  int64_t moves_ = 0;
  int64_t round_ = 0;
  int64_t length_ = 0;    // tabu iterations of a round
  int32_t stale_ = 0;     // rounds without a new member
  int32_t strength_ = 3;  // of the next kick
  std::vector<Member> population_;
  std::vector<int> best_;
  int64_t best_cost_ = 0;

  bool is_in_round_ = false;
  int64_t tabu_moves_ = 0;
  int64_t chunk_ = 0;
  std::string saved_;
};

}  // namespace sekisho::rankmap
