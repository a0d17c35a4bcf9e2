// SPDX-License-Identifier: Apache-2.0
// Incremental values equal full re-evaluation: every objective, network and occupation.
// SEKISHO_RANKMAP_SWAPS=1000000 runs the long mode.
#include <cstdlib>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rankmap/evaluate.h"
#include "rankmap/hop_cost.h"
#include "rankmap/link_loads.h"
#include "rankmap/random.h"

namespace sekisho::rankmap {
namespace {

int Swaps() {
  const char* text = std::getenv("SEKISHO_RANKMAP_SWAPS");
  return text == nullptr ? 2000 : std::atoi(text);
}

Pattern RandomPattern(int ranks, int messages, int steps, uint64_t seed) {
  Random random(seed);
  std::vector<Message> list;
  for (int i = 0; i < messages; ++i) {
    list.push_back({random.Below(ranks), random.Below(ranks), 7 * random.Below(1 << (1 + i % 20)),
                    static_cast<int32_t>(random.Below(steps)), 1 + random.Below(3)});
  }
  return *Pattern::Create(ranks, std::move(list));
}

Network Grid(std::vector<int> dims, bool wrap, std::vector<int> order = {}, Tie tie = Tie::kPlus) {
  const size_t n = dims.size();
  return *Network::MakeGrid({std::move(dims), std::vector<bool>(n, wrap), std::move(order), tie});
}

Network RandomMatrix(int nodes, bool symmetric) {
  Random random(5);
  std::vector<int64_t> distances(nodes * nodes);
  for (int a = 0; a < nodes; ++a) {
    for (int b = 0; b < nodes; ++b) {
      distances[a * nodes + b] = symmetric && b < a ? distances[b * nodes + a] : random.Below(1000);
    }
  }
  return *Network::MakeMatrix(nodes, std::move(distances));
}

struct Case {
  const char* name;
  std::function<Network()> network;
  int ranks;
  int capacity;
};

class Incremental : public testing::TestWithParam<Case> {
 protected:
  Incremental()
      : network_(GetParam().network()),
        pattern_(RandomPattern(GetParam().ranks, GetParam().ranks * 6, 3, 11)) {
    EXPECT_TRUE(network_.set_capacity(GetParam().capacity).ok());
    Random random(3);
    std::vector<uint32_t> slots(network_.slots());
    for (uint32_t i = 0; i < slots.size(); ++i) {
      slots[i] = i;
    }
    random.Shuffle(slots);
    start_ = Placement(std::move(slots));
  }

  Network network_;
  Pattern pattern_;
  Placement start_;
};

TEST_P(Incremental, HopCostEqualsFullEvaluation) {
  for (const Weight weight : {Weight::kBytes, Weight::kMessages}) {
    const Graph graph = MakeGraph(pattern_, weight, network_.slots());
    HopCost cost(graph, network_, start_);
    // Distances of a node to itself are outside the graph when both ends are one rank.
    const auto full = [&](const Placement& p) {
      int64_t sum = 0;
      for (const Message& m : pattern_.messages()) {
        if (m.source != m.target) {
          sum += (weight == Weight::kBytes ? m.bytes : m.count) *
                 network_.Distance(p.slot_of(m.source) / network_.capacity(),
                                   p.slot_of(m.target) / network_.capacity());
        }
      }
      return sum;
    };

    Random random(17);
    for (int i = 0; i < Swaps(); ++i) {
      const uint32_t a = random.Below(network_.slots());
      const uint32_t b = random.Below(network_.slots());
      if (a != b) {
        cost.Swap(a, b, cost.Delta(a, b));
      }
      if (i % 64 == 0) {
        ASSERT_EQ(cost.cost() * graph.unit, full(cost.placement()));
      }
    }
    EXPECT_EQ(cost.cost() * graph.unit, full(cost.placement()));
  }
}

TEST_P(Incremental, LinkLoadsEqualFullEvaluation) {
  if (network_.links() == 0) {
    return;
  }
  for (const bool by_step : {false, true}) {
    LinkLoads loads(pattern_, network_, by_step, start_, {.hops = 0.5, .loads = 0.02});
    Random random(23);
    for (int i = 0; i < Swaps(); ++i) {
      std::vector<uint32_t> cycle;
      for (uint32_t k = 2 + random.Below(3); k > 0; --k) {
        const uint32_t rank = random.Below(network_.slots());
        if (std::find(cycle.begin(), cycle.end(), rank) == cycle.end()) {
          cycle.push_back(rank);
        }
      }
      const double most = random.Unit() - 0.5;
      const double limited = loads.TryCycle(cycle, most);
      const double rise = loads.TryCycle(cycle);
      ASSERT_EQ(limited > most, rise > most) << limited << " or " << rise << ", of " << most;
      if (random.Below(4) != 0) {
        loads.Commit();
      }
      if (i % 64 == 0 || i + 1 == Swaps()) {
        const Values full = Evaluate(pattern_, network_, loads.placement());
        ASSERT_EQ(loads.max_link(), by_step ? full.step_sum : full.max_link);
        ASSERT_EQ(loads.hops_sum(), full.hops_sum);
        if (!by_step) {
          ASSERT_EQ(loads.PlaneLoads(0), LinkBytes(pattern_, network_, loads.placement()));
        }
        const double smooth = loads.smooth();
        loads.set_power(loads.power());
        ASSERT_NEAR(smooth, loads.smooth(), 1e-6 * smooth);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Incremental,
    testing::Values(Case{"Torus3",
                         [] {
                           return Grid({4, 6, 5}, true);
                         },
                         120, 1},
                    Case{"TorusPartial",
                         [] {
                           return Grid({4, 4, 4}, true, {2, 0, 1});
                         },
                         50, 1},
                    Case{"TorusPacked",
                         [] {
                           return Grid({4, 4, 2}, true, {}, Tie::kParity);
                         },
                         60, 2},
                    Case{"TorusMinus",
                         [] {
                           return Grid({2, 8, 1}, true, {}, Tie::kMinus);
                         },
                         16, 1},
                    Case{"Torus5",
                         [] {
                           return Grid({3, 2, 4, 2, 3}, true);
                         },
                         140, 1},
                    Case{"Ring", [] { return Grid({31}, true); }, 31, 1},
                    Case{"Mesh2",
                         [] {
                           return Grid({9, 7}, false);
                         },
                         63, 1},
                    Case{"FatTree",
                         [] {
                           return *Network::MakeTree({{4, 3, 4}, {4, 2, 2}, {6, 1, 1}});
                         },
                         90, 1},
                    Case{"Matrix", [] { return RandomMatrix(40, true); }, 40, 1},
                    Case{"DirectedMatrix", [] { return RandomMatrix(30, false); }, 55, 2}),
    [](const auto& info) { return info.param.name; });

TEST(Network, RoutesAreAsLongAsTheDistance) {
  for (const Network& network : {Grid({6, 5, 4}, true), Grid({6, 5, 4}, false, {1, 2, 0}),
                                 *Network::MakeTree({{3, 1}, {5, 1}})}) {
    for (int a = 0; a < network.nodes(); ++a) {
      for (int b = 0; b < network.nodes(); ++b) {
        int hops = 0;
        network.Route(a, b, [&](int link) {
          ASSERT_LT(link, network.links());
          ++hops;
        });
        ASSERT_EQ(hops, network.Distance(a, b));
      }
    }
  }
}

TEST(Network, HalfWayRoundGoesByTheTieRule) {
  const auto first = [](Tie tie, int from, int to) {
    int result = -1;
    Grid({4}, true, {}, tie).Route(from, to, [&](int link) {
      result = result < 0 ? link : result;
    });
    return result;
  };
  EXPECT_EQ(first(Tie::kPlus, 1, 3), 2);
  EXPECT_EQ(first(Tie::kMinus, 1, 3), 3);
  EXPECT_EQ(first(Tie::kParity, 1, 3), 3);
  EXPECT_EQ(first(Tie::kParity, 0, 2), 0);
}

TEST(Network, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(Network::MakeGrid({{}, {}, {}, Tie::kPlus}).ok());
  EXPECT_FALSE(Network::MakeGrid({{4, 0}, {true, true}, {}, Tie::kPlus}).ok());
  EXPECT_FALSE(Network::MakeGrid({{4, 4}, {true, true}, {0, 0}, Tie::kPlus}).ok());
  EXPECT_FALSE(Network::MakeGrid({{30000, 30000}, {true, true}, {}, Tie::kPlus}).ok());
  EXPECT_FALSE(Network::MakeMatrix(2, {0, 1, -1, 0}).ok());
  EXPECT_FALSE(Network::MakeMatrix(2, {0, 1, 1}).ok());
  EXPECT_FALSE(Network::MakeTree({}).ok());
  EXPECT_FALSE(Grid({4}, true).set_capacity(0).ok());
}

TEST(Pattern, AddsUpMessagesOfAPairAndStep) {
  const auto pattern = Pattern::Create(3, {{0, 1, 5, 0, 1}, {2, 1, 1, 0, 1}, {0, 1, 6, 0, 2}});

  ASSERT_TRUE(pattern.ok());
  EXPECT_THAT(pattern->messages(),
              testing::ElementsAre(Message{0, 1, 11, 0, 3}, Message{2, 1, 1, 0, 1}));
}

TEST(Pattern, RefusesBadMessages) {
  EXPECT_FALSE(Pattern::Create(2, {{0, 2, 1, 0, 1}}).ok());
  EXPECT_FALSE(Pattern::Create(2, {{0, 1, -1, 0, 1}}).ok());
  EXPECT_FALSE(Pattern::Create(0, {}).ok());
  EXPECT_FALSE(
      Pattern::Create(2, {{0, 1, int64_t{1} << 52, 0, 1}, {1, 0, int64_t{1} << 53, 0, 1}}).ok());
}

TEST(Placement, NodesMustFit) {
  Network network = Grid({4}, true);
  const std::vector<int> twice = {1, 1};
  EXPECT_FALSE(FromNodes(network, 2, twice).ok());
  ASSERT_TRUE(network.set_capacity(2).ok());
  ASSERT_TRUE(FromNodes(network, 2, twice).ok());
  EXPECT_EQ(ToNodes(network, 2, *FromNodes(network, 2, twice)), twice);
  EXPECT_FALSE(FromNodes(network, 2, std::vector<int>{0, 4}).ok());
}

TEST(Random, LogarithmAndExponentialAreAccurate) {
  for (double x = 1e-9; x < 1e9; x *= 1.7) {
    EXPECT_NEAR(Ln(x), std::log(x), 1e-13 * (1 + std::abs(std::log(x))));
  }
  for (double x = -50; x < 50; x += 0.37) {
    EXPECT_NEAR(Exp(x) / std::exp(x), 1.0, 1e-13);
  }
}

}  // namespace
}  // namespace sekisho::rankmap
