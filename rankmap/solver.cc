// SPDX-License-Identifier: Apache-2.0
#include "rankmap/solver.h"

#include <algorithm>

#include "rankmap/construct.h"
#include "rankmap/lift.h"

namespace sekisho::rankmap {
namespace {

constexpr int kHopChunk = 8192;
constexpr int kLinkChunk = 1024;
constexpr double kConstructShare = 0.12;
constexpr double kLiftShare = 0.35;  // where lifting balances link loads: little is left to anneal after it
// Of a pattern whose bisections differ much by their seeds the best of many is worth more than annealing: that hardly heals a
// grid that is laid out in pieces.
constexpr int kFewBisections = 3;
constexpr double kFewShare = 0.25;
constexpr double kLuckyShare = 0.5;
constexpr double kLuckySpread = 1.08;
constexpr int kLiftEvery = 4;        // one of so many constructions is a bisection all the same
constexpr int kMostBisections = 40;
constexpr double kCoolTo = 1.0 / 25;  // where a cooling ends, of where it begins
constexpr double kHopProbe = 0.04;    // of the budget, each
constexpr double kHopsBeforeLinks = 0.15;
constexpr double kLinkProbe = 0.135;  // of what is left of the budget

// Each probe of the link loads is a whole cooling: what it begins with, how warm in shares of a link.
struct LinkStart {
  double hot = 0;
  bool is_best = false;  // else what has the least distances
};
constexpr LinkStart kLinkStarts[Solver::kLinkProbes] = {{1.0, false}, {0.1, false}, {0.1, true}, {0.02, true}};
constexpr double kLinkCoolTo = 0.01;  // of the warmest start, or a fifth of a colder one

// What a construction counts as in a run limited by moves, beside those that it proposes.
int64_t MovesOf(const Problem& problem) {
  return static_cast<int64_t>(problem.network.slots()) * 16;
}

std::vector<double> HopTemperatures(const Graph& graph) {
  std::vector<int64_t> weights;
  for (const Graph::Arc& arc : graph.arcs) {
    weights.push_back(arc.both());
  }
  if (weights.empty()) {
    return {1.0};
  }
  std::nth_element(weights.begin(), weights.begin() + weights.size() / 2, weights.end());
  const double middle = static_cast<double>(weights[weights.size() / 2]);
  return {middle * 0.25, middle, middle * 4, middle * 16};
}

// The n-th from here on: more and more effort, from parts of two sizes in turns.
LiftOptions NextLift(Objective objective, const Network& network, int n) {
  LiftOptions options;
  options.objective = objective;
  options.effort = std::min(0.5 * (1 << std::min(n / 2, 3)), 2.0);
  const bool is_first = n % 2 == 0;
  if (IsWide(network)) {
    options.base = is_first ? 16 : 32;
  } else {
    options.base = objective == Objective::kSteps ? (is_first ? 16 : 64) : (is_first ? 64 : 128);
  }
  return options;
}

}  // namespace

Problem::Problem(const Pattern& p, const Network& n, const SolveOptions& o)
    : pattern(p),
      network(n),
      options(o),
      graph(
          MakeGraph(p, o.objective == Objective::kQap ? o.qap_weight : Weight::kBytes, n.slots())),
      calls(o.objective == Objective::kRmatt ? std::optional(MakeGraph(p, Weight::kMessages, n.slots())) : std::nullopt),
      near(n),
      bounds(LowerBounds(p, n)),
      bound(ObjectiveBound(bounds, o.objective, o.qap_weight)) {}

double Problem::Value(const Placement& placement) const {
  return ObjectiveValue(Evaluate(pattern, network, placement), options.objective,
                        options.qap_weight);
}

bool Problem::IsOwnFixed() const {
  const auto is_own = [](const Message& m) { return m.source == m.target; };
  if (network.kind() != Network::Kind::kMatrix ||
      std::none_of(pattern.messages().begin(), pattern.messages().end(), is_own)) {
    return true;
  }
  for (int node = 0; node < network.nodes(); ++node) {
    if (network.Distance(node, node) != network.Distance(0, 0)) {
      return false;
    }
  }
  return true;
}

Solver::Solver(const Problem& problem, int island, const Placement* start)
    : problem_(problem),
      island_(island),
      random_(problem.options.seed * 0x9e3779b97f4a7c15 + island),
      has_start_(start != nullptr),
      best_(start != nullptr ? *start : Placement(problem.network.slots())),
      best_value_(problem.Value(best_)),
      hop_best_(best_),
      hop_cost_(HopCost(problem.graph, problem.network, best_).cost()),
      hots_(HopTemperatures(problem.graph)) {
  if (!NeedsLinks(problem.options.objective)) {
    own_bytes_ = best_value_ - static_cast<double>(hop_cost_ * problem.graph.unit);
    is_own_fixed_ = problem.IsOwnFixed();
  }
  CheckBound();
}

std::string_view Solver::phase() const {
  switch (phase_) {
    case Phase::kConstruct:
      return "construct";
    case Phase::kHops:
      return "anneal distance";
    case Phase::kLinks:
      return "anneal loads";
    case Phase::kDone:
      return "done";
  }
  return "";
}

void Solver::CheckBound() {
  if (best_value_ <= problem_.bound) {
    phase_ = Phase::kDone;
  }
}

void Solver::NoteBest(const Placement& placement, double value) {
  if (value < best_value_) {
    best_value_ = value;
    best_ = placement;
    CheckBound();
  }
}

void Solver::Consider(Placement placement, bool is_bisection) {
  const int64_t cost = HopCost(problem_.graph, problem_.network, placement).cost();
  const double value = problem_.Value(placement);
  NoteBest(placement, value);
  if (cost < hop_cost_) {
    hop_cost_ = cost;
    hop_best_ = std::move(placement);
  }
  if (is_bisection) {
    NoteBisection(static_cast<double>(cost), value);
  }
}

void Solver::NoteBisection(double cost, double value) {
  Bisections& b = bisections_;
  b.least_cost = b.count == 0 ? cost : std::min(b.least_cost, cost);
  b.most_cost = std::max(b.most_cost, cost);
  b.least_value = b.count == 0 ? value : std::min(b.least_value, value);
  b.most_value = std::max(b.most_value, value);
  ++b.count;
}

void Solver::Offer(const Placement& placement, double value) {
  if (value < best_value_) {
    Consider(placement);
    NoteBest(placement, value);
  }
}

void Solver::Step(double progress, const Stop& stop) {
  switch (phase_) {
    case Phase::kConstruct:
      if (AreConstructionsOver(progress)) {
        StartHops(progress);
      } else if (Construct(progress, stop)) {
        ++construction_;
        moves_ += MovesOf(problem_);
      }
      break;
    case Phase::kHops:
      StepHops(progress);
      break;
    case Phase::kLinks:
      StepLinks(progress);
      break;
    case Phase::kDone:
      break;
  }
}

bool Solver::AreConstructionsOver(double progress) const {
  const Method method = problem_.options.method;
  if (method == Method::kAnneal || (has_start_ && method == Method::kOptim)) {
    return true;
  }
  if (method == Method::kOptim) {
    return construction_ >= 1;
  }
  const int fixed = island_ == 0 && method == Method::kAuto ? kFixedConstructions : 0;
  const bool lifts_loads = has_levels_ && NeedsLinks(problem_.options.objective);
  return construction_ > fixed && !DecidesLuck(progress) &&
         (progress >= (lifts_loads ? kLiftShare : kConstructShare) || construction_ >= fixed + kMostBisections);
}

// Whether another bisection is likely to come to more than annealing what there is.
bool Solver::DecidesLuck(double progress) const {
  if (has_levels_ || problem_.options.method != Method::kAuto || bisections_.count == 0) {
    return false;
  }
  const Bisections& b = bisections_;
  const bool differ = b.most_value > kLuckySpread * b.least_value;  // loads differ more easily, and anneal better
  if (b.count < kFewBisections || (NeedsLinks(problem_.options.objective) && differ && b.least_value <= best_value_)) {
    return progress < kFewShare;
  }
  return progress < kLuckyShare && b.most_cost > kLuckySpread * b.least_cost && b.least_cost <= static_cast<double>(hop_cost_);
}

// RMATT's product takes bisections of messages and of bytes in turns.
bool Solver::CutsCalls(int bisection) const {
  return problem_.calls && problem_.options.method == Method::kAuto && bisection % 2 == 0;
}

bool Solver::Construct(double, const Stop& stop) {
  const bool is_auto = problem_.options.method == Method::kAuto;
  const int fixed = island_ == 0 && is_auto ? kFixedConstructions : 0;
  // Its own randomness, so that an interrupted construction repeats alike.
  Random random(problem_.options.seed * 0xd1342543de82ef95 + island_ * 1000003 + construction_);
  std::optional<Placement> placement;
  int64_t moves = 0;  // counted once it is done
  bool is_bisection = is_auto && construction_ == kBisectConstruction && fixed > 0;
  if (construction_ < fixed) {
    bool was_stopped = false;
    placement = FixedConstruction(construction_, problem_, random, stop, was_stopped, moves);
    if (was_stopped) {
      return false;
    }
    has_levels_ = has_levels_ && (construction_ != kLiftConstruction || placement);
  } else if (is_auto && has_levels_ && (construction_ - fixed) % kLiftEvery != kLiftEvery - 1) {
    const int lifted = construction_ - fixed - (construction_ - fixed) / kLiftEvery;
    placement = Lift(problem_.graph, problem_.pattern, problem_.network,
                     NextLift(problem_.options.objective, problem_.network, lifted), random, stop, moves);
    if (stop()) {
      return false;
    }
    has_levels_ = placement.has_value() || lifted > 1;
  } else {
    const bool is_of_calls = CutsCalls(has_levels_ ? (construction_ - fixed) / kLiftEvery : construction_ - fixed);
    placement = Bisem(is_of_calls ? *problem_.calls : problem_.graph, problem_.pattern.ranks(), problem_.network,
                      {.max_itrs = problem_.options.max_itrs}, random, stop);
    if (!placement) {
      return false;
    }
    is_bisection = !is_of_calls;
  }
  moves_ += moves;
  if (placement) {
    Consider(*std::move(placement), is_bisection);
  }
  return true;
}

void Solver::StartHops(double progress) {
  if (problem_.options.method == Method::kBisem) {
    phase_ = Phase::kDone;
    return;
  }
  const bool wants_links = NeedsLinks(problem_.options.objective);
  if (wants_links && problem_.options.method != Method::kAuto) {
    return StartLinks(progress);
  }
  phase_ = Phase::kHops;
  run_ = {};
  run_.index = -1;
  best_hot_ = hots_.front();
  best_probe_ = -1;
  hops_ = std::make_unique<HopAnnealer>(problem_.graph, problem_.network, problem_.near, hop_best_);
  NextHopRun(progress);
}

// Probes, then one long cooling from the best of them, then a cold one from the best of all.
void Solver::NextHopRun(double progress) {
  const bool wants_links = NeedsLinks(problem_.options.objective);
  const int probes = static_cast<int>(hots_.size());
  ++run_.index;
  run_.begin = progress;
  if (run_.index < probes) {
    run_.hot = hots_[run_.index];
    run_.end = progress + (wants_links ? 0.25 : 1.0) * kHopProbe;
  } else if (run_.index == probes) {
    run_.hot = best_hot_ * 1.5;
    run_.end = progress + (wants_links ? kHopsBeforeLinks : 0.85) * (1 - progress);
  } else if (wants_links) {
    return StartLinks(progress);
  } else {
    run_.hot = best_hot_ * 0.3;
    run_.end = std::max(1.0, progress + 0.05);
  }
  hops_->Reset(hop_best_);
}

void Solver::StepHops(double progress) {
  if (progress >= run_.end) {
    const double reached = static_cast<double>(hops_->best_cost());
    if (run_.index < static_cast<int>(hots_.size()) && (best_probe_ < 0 || reached < best_probe_)) {
      best_probe_ = reached;
      best_hot_ = run_.hot;
    }
    return NextHopRun(progress);
  }
  const double part = (progress - run_.begin) / (run_.end - run_.begin);
  const double hot = run_.hot * Exp(Ln(kCoolTo) * part);
  hops_->Chunk(kHopChunk, hot, hot, random_);
  moves_ += kHopChunk;
  if (hops_->best_cost() < hop_cost_) {
    hop_cost_ = hops_->best_cost();
    hop_best_ = hops_->best();
    if (NeedsLinks(problem_.options.objective) || !is_own_fixed_) {
      NoteBest(hop_best_, problem_.Value(hop_best_));
    } else {
      NoteBest(hop_best_, own_bytes_ + static_cast<double>(hop_cost_ * problem_.graph.unit));
    }
  }
}

void Solver::StartLinks(double progress) {
  phase_ = Phase::kLinks;
  hops_.reset();
  LinkAnnealOptions options;
  options.objective = problem_.options.objective;
  if (problem_.options.method == Method::kOptim) {
    options.range = problem_.options.range > 0 ? problem_.options.range : 3;
    options.num_swaps = problem_.options.num_swaps;
  }
  links_ = std::make_unique<LinkAnnealer>(problem_.pattern, problem_.graph, problem_.network,
                                          problem_.near, options, best_);
  run_ = {};
  run_.index = -1;
  best_probe_ = -1;
  NextLinkRun(progress);
}

void Solver::NextLinkRun(double progress) {
  ++run_.index;
  run_.begin = progress;
  const double one = 1.0 / std::max(problem_.network.links(), 1);  // a link's share
  bool is_best = true;
  if (run_.index < kLinkProbes) {
    run_.hot = kLinkStarts[run_.index].hot * one;
    run_.end = progress + kLinkProbe * (1 - progress);
    is_best = kLinkStarts[run_.index].is_best;
  } else if (run_.index == kLinkProbes) {
    run_.hot = kLinkStarts[probe_start_].hot * one;
    run_.end = progress + 0.8 * (1 - progress);
    is_best = kLinkStarts[probe_start_].is_best;
  } else {
    run_.hot = kLinkStarts[kLinkProbes - 1].hot * one;
    run_.end = std::max(1.0, progress + 0.05);
  }
  links_->Reset(is_best ? best_ : hop_best_);
}

void Solver::StepLinks(double progress) {
  if (progress >= run_.end) {
    if (run_.index < kLinkProbes && (best_probe_ < 0 || links_->best_value() < best_probe_)) {
      best_probe_ = links_->best_value();
      probe_start_ = run_.index;
    }
    return NextLinkRun(progress);
  }
  const double part = (progress - run_.begin) / (run_.end - run_.begin);
  const double cold = std::min(kLinkCoolTo / std::max(problem_.network.links(), 1), 0.2 * run_.hot);
  const double hot = run_.hot * Exp(Ln(cold / run_.hot) * part);
  links_->Chunk(kLinkChunk, hot, hot, part < 0.6 ? 8 : 32, random_);
  moves_ += kLinkChunk;
  NoteBest(links_->best(), links_->best_value());
}

}  // namespace sekisho::rankmap
