// SPDX-License-Identifier: Apache-2.0
// One search for a placement as a state machine: constructions, then probes of the temperature,
// then annealing.  A step is a pure function of state, progress and stop, so a run limited by moves
// repeats bit by bit, and a checkpoint between steps resumes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "rankmap/anneal.h"
#include "rankmap/bisem.h"
#include "rankmap/bound.h"
#include "rankmap/evaluate.h"

namespace sekisho::rankmap {

enum class Method { kAuto, kBisem, kOptim, kAnneal };

struct SolveOptions {
  Objective objective = Objective::kHopBytes;
  Weight qap_weight = Weight::kMessages;
  Method method = Method::kAuto;
  uint64_t seed = 1;
  int max_itrs = -1;  // BISEM
  int range = 0;      // OPTIM
  int num_swaps = 2;  // OPTIM
};

// What all islands share and none changes.
struct Problem {
  // `pattern` and `network` outlive this.  CheckProblem has said yes.
  Problem(const Pattern& pattern, const Network& network, const SolveOptions& options);

  const Pattern& pattern;
  const Network& network;
  SolveOptions options;
  Graph graph;  // of the weight that the hop objective counts
  std::optional<Graph> calls;  // RMATT's product counts hops of messages, not of bytes
  NearNodes near;
  Bounds bounds;
  double bound = 0;  // of the objective

  double Value(const Placement& placement) const;
  // Whether what ranks send to themselves costs the same on every node.
  bool IsOwnFixed() const;
};

class Solver {
 public:
  static constexpr int kLinkProbes = 4;

  // Island 0 also builds what depends on no seed.
  Solver(const Problem& problem, int island, const Placement* start);

  // One piece of work, mostly some 10 ms.  `progress` in [0, 1] is how much of the budget is used;
  // a construction that `stop` interrupts is left undone and tried again at the next call.
  void Step(double progress, const Stop& stop);

  bool is_done() const { return phase_ == Phase::kDone; }
  int64_t moves() const { return moves_; }
  double best_value() const { return best_value_; }
  const Placement& best() const { return best_; }
  std::string_view phase() const;

  // A placement that another island found.
  void Offer(const Placement& placement, double value);

  std::string Save() const;
  absl::Status Restore(std::string_view bytes);

 private:
  enum class Phase : uint8_t { kConstruct, kHops, kLinks, kDone };

  // A stretch of annealing between two points of the budget.
  struct Run {
    double begin = 0;
    double end = 0;
    double hot = 0;
    int32_t index = 0;
  };

  // What bisections from different seeds came to: in distances, and by the objective.
  struct Bisections {
    int64_t count = 0;
    double least_cost = 0;
    double most_cost = 0;
    double least_value = 0;
    double most_value = 0;
  };

  uint64_t Key() const;
  void Consider(Placement placement, bool is_bisection = false);
  void NoteBest(const Placement& placement, double value);
  bool Construct(double progress, const Stop& stop);
  bool CutsCalls(int bisection) const;
  void NoteBisection(double cost, double value);
  bool AreConstructionsOver(double progress) const;
  bool DecidesLuck(double progress) const;
  void StartHops(double progress);
  void StartLinks(double progress);
  void NextHopRun(double progress);
  void NextLinkRun(double progress);
  void StepHops(double progress);
  void StepLinks(double progress);
  void CheckBound();

  const Problem& problem_;
  const int island_;
  Random random_;
  Phase phase_ = Phase::kConstruct;
  int64_t moves_ = 0;
  int32_t construction_ = 0;
  Bisections bisections_;
  bool has_start_ = false;
  bool has_levels_ = true;  // until Lift finds no hierarchy in the pattern's weights

  Placement best_;
  double best_value_ = 0;
  Placement hop_best_;  // least weight * distance
  int64_t hop_cost_ = 0;
  double own_bytes_ = 0;  // what messages of ranks to themselves add, whatever the placement ...
  bool is_own_fixed_ = true;  // ... unless nodes of a matrix differ in their distances to themselves

  Run run_;
  double best_hot_ = 0;  // of the probes
  double best_probe_ = 0;
  int32_t probe_start_ = 0;  // which start the best probe had
  std::vector<double> hots_;
  std::unique_ptr<HopAnnealer> hops_;
  std::unique_ptr<LinkAnnealer> links_;
};

}  // namespace sekisho::rankmap
