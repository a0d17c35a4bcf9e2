// SPDX-License-Identifier: Apache-2.0
#include "rankmap/construct.h"

#include <algorithm>
#include <bit>

#include "rankmap/area.h"
#include "rankmap/cube.h"
#include "rankmap/hop_cost.h"
#include "rankmap/lattice.h"
#include "rankmap/lift.h"

namespace sekisho::rankmap {
namespace {

constexpr double kFirstLiftEffort = 0.25;
constexpr double kFirstWideLiftEffort = 0.1;
constexpr int kQuicklyBisected = 16384;  // slots: in less than half a second

// Slots along recursive bisection of the network: a Z curve on grids of powers of two.
std::vector<uint32_t> BisectionOrder(const Network& network) {
  const AreaMap areas(network);
  std::vector<uint32_t> order;
  std::vector<Area> stack = {areas.Whole()};
  while (!stack.empty()) {
    const Area area = std::move(stack.back());
    stack.pop_back();
    if (areas.Nodes(area) == 1) {
      for (int k = 0; k < network.capacity(); ++k) {
        order.push_back(areas.AnyNode(area) * network.capacity() + k);
      }
      continue;
    }
    Area first;
    Area second;
    areas.Split(area, first, second);
    stack.push_back(std::move(second));
    stack.push_back(std::move(first));
  }
  return order;
}

// Ranks in the order of their reversed bits: partners far apart in number come together.
Placement BitReversed(int ranks, const Network& network) {
  const int bits = std::bit_width(static_cast<unsigned>(ranks - 1));
  std::vector<uint32_t> order = BisectionOrder(network);
  uint32_t place = 0;
  std::vector<uint32_t> slot_of(network.slots());
  for (uint32_t code = 0; code < (1u << bits); ++code) {
    uint32_t rank = 0;
    for (int b = 0; b < bits; ++b) {
      rank |= ((code >> b) & 1) << (bits - 1 - b);
    }
    if (rank < static_cast<uint32_t>(ranks)) {
      slot_of[rank] = order[place++];
    }
  }
  for (int rank = ranks; rank < network.slots(); ++rank) {
    slot_of[rank] = order[place++];
  }
  return Placement(std::move(slot_of));
}

// The same along Gray codes, which go the least way round rings.
std::optional<Placement> GrayReversed(int ranks, const Network& network) {
  const int bits = std::bit_width(static_cast<unsigned>(ranks)) - 1;
  if (ranks < 2 || ranks != 1 << bits) {
    return std::nullopt;
  }
  std::vector<uint32_t> corners(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    for (int b = 0; b < bits; ++b) {
      corners[rank] |= static_cast<uint32_t>(rank >> b & 1) << (bits - 1 - b);
    }
  }
  return PlaceCube(corners, network);
}

// Of both the one of less distance; step by step what goes by halves has fewer messages that meet.
Placement BestReversed(const Problem& problem) {
  Placement halves = BitReversed(problem.pattern.ranks(), problem.network);
  auto gray = problem.options.objective == Objective::kSteps ? std::nullopt : GrayReversed(problem.pattern.ranks(), problem.network);
  const auto cost = [&](const Placement& placement) { return HopCost(problem.graph, problem.network, placement).cost(); };
  return gray && cost(*gray) < cost(halves) ? *std::move(gray) : halves;
}

// The fold of least cost, if the pattern is a grid or a cube.
std::optional<Placement> BestFold(const Graph& graph, int ranks, const Network& network,
                                  const Stop& stop) {
  if (const auto corners = RecogniseCube(graph, ranks); corners) {
    if (auto placement = PlaceCube(*corners, network); placement) {
      return placement;
    }
  }
  const auto lattice = RecogniseLattice(graph, ranks);
  if (!lattice) {
    return std::nullopt;
  }
  std::optional<Placement> best;
  int64_t least = 0;
  for (Placement& placement : FoldLattice(*lattice, ranks, network, stop)) {
    const int64_t cost = HopCost(graph, network, placement).cost();
    if (!best || cost < least) {
      least = cost;
      best = std::move(placement);
    }
  }
  return best;
}

// Loads by step want small parts to begin with, laid so that no two messages of a step meet.  Where a node has many
// neighbours, small parts do, with less effort: single swaps mend what is not the best.
LiftOptions FirstLift(Objective objective, const Network& network) {
  const bool is_wide = IsWide(network);
  LiftOptions options;
  options.effort = is_wide && !NeedsLinks(objective) ? kFirstWideLiftEffort : kFirstLiftEffort;
  options.objective = objective;
  options.base = objective == Objective::kSteps || is_wide ? 16 : options.base;
  return options;
}

}  // namespace

std::optional<Placement> FixedConstruction(int index, const Problem& problem, Random& random, const Stop& stop,
                                           bool& was_stopped, int64_t& moves) {
  const Graph& graph = problem.graph;
  const Pattern& pattern = problem.pattern;
  const Network& network = problem.network;
  const SolveOptions& options = problem.options;
  std::optional<Placement> placement;
  was_stopped = false;
  switch (index) {
    case 0:
      return Placement(BisectionOrder(network));
    case kReversedConstruction:
      return BestReversed(problem);
    case kFoldConstruction:
      placement = BestFold(graph, pattern.ranks(), network, stop);
      break;
    case kLiftConstruction:
      placement = Lift(graph, pattern, network, FirstLift(options.objective, network), random, stop, moves);
      break;
    default:
      if (network.slots() <= kQuicklyBisected) {
        placement = Bisem(graph, pattern.ranks(), network, {.max_itrs = options.max_itrs}, random, stop);
      }
      break;
  }
  was_stopped = stop();
  return placement;
}

}  // namespace sekisho::rankmap
