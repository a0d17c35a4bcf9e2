// SPDX-License-Identifier: Apache-2.0
#include "topology/bandwidth.h"

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <utility>

#include <gmock/gmock.h>

#include "topology/sim/families.h"
#include "topology/sim/flows.h"

namespace sekisho::topology {
namespace {

// Runs the map against fair sharing, of which each transfer gets `share` of its own; fails the test
// if two transfers of a stage share a link.
BandwidthMap Measure(
    const Tree& tree, const std::vector<double>& mbps,
    const std::function<double()>& share = [] { return 1; }) {
  BandwidthMap map(tree);
  for (;;) {
    const std::vector<Transfer> stage = map.Next();
    if (stage.empty()) {
      return map;
    }
    std::vector<std::pair<int, int>> flows;
    std::set<int> links;
    for (const Transfer& transfer : stage) {
      for (const int link : transfer.links) {
        EXPECT_TRUE(links.insert(link).second);
      }
      flows.insert(flows.end(), transfer.flows.begin(), transfer.flows.end());
    }
    const std::vector<double> rates = sim::FairRates(tree, mbps, flows);
    size_t next = 0;
    for (const Transfer& transfer : stage) {
      double sum = 0;
      for (size_t i = 0; i < transfer.flows.size(); ++i) {
        sum += rates[next++];
      }
      map.Report(transfer, sum * share());
    }
  }
}

// Three switches of three hosts on one.
Tree ThreeByThree() {
  Tree tree{.host_count = 9, .vertex_count = 13, .links = {}};
  for (int i = 0; i < 9; ++i) {
    tree.links.push_back({i, 9 + i / 3, 20});
  }
  for (int i = 0; i < 3; ++i) {
    tree.links.push_back({9 + i, 12, 3});
  }
  return tree;
}

TEST(BandwidthMap, MeasuresEqualLinks) {
  const Tree tree = ThreeByThree();
  const std::vector<double> mbps(tree.links.size(), 100);

  const BandwidthMap map = Measure(tree, mbps);

  for (const double rate : map.mbps()) {
    EXPECT_NEAR(rate, 100, 10);
  }
}

TEST(BandwidthMap, IsNotMisledByASlowLinkBelowAFastOne) {
  const Tree tree = ThreeByThree();
  std::vector<double> mbps(tree.links.size(), 100);
  mbps[0] = 10;   // a host's
  mbps[9] = 200;  // its switch's carries more than any one host sends

  const BandwidthMap map = Measure(tree, mbps);

  EXPECT_NEAR(map.mbps()[0], 10, 1);
  EXPECT_NEAR(map.mbps()[1], 100, 10);
  EXPECT_NEAR(map.mbps()[9], 200, 20);
}

TEST(BandwidthMap, FindsTheSlowOneOfThreeUplinks) {
  const Tree tree = ThreeByThree();
  std::vector<double> mbps(tree.links.size(), 100);
  mbps[10] = 30;

  const BandwidthMap map = Measure(tree, mbps);

  EXPECT_NEAR(map.mbps()[10], 30, 3);
  EXPECT_NEAR(map.mbps()[9], 100, 10);
  EXPECT_NEAR(map.mbps()[11], 100, 10);
}

TEST(BandwidthMap, FindsAFastHostBesideSlowOnes) {
  Tree tree{.host_count = 5, .vertex_count = 6, .links = {}};
  for (int host = 0; host < 5; ++host) {
    tree.links.push_back({host, 5, 20});
  }
  const std::vector<double> mbps = {100, 40, 40, 40, 40};

  const BandwidthMap map = Measure(tree, mbps);

  for (size_t i = 0; i < mbps.size(); ++i) {
    EXPECT_NEAR(map.mbps()[i], mbps[i], mbps[i] / 10) << i;
    EXPECT_FALSE(map.IsAtLeast(static_cast<int>(i))) << i;
  }
}

TEST(BandwidthMap, SaysWhereTheOthersCouldNotTakeMore) {
  Tree tree{.host_count = 3, .vertex_count = 4, .links = {}};
  for (int host = 0; host < 3; ++host) {
    tree.links.push_back({host, 3, 20});
  }

  const BandwidthMap map = Measure(tree, {100, 30, 30});

  EXPECT_NEAR(map.mbps()[0], 60, 6);
  EXPECT_TRUE(map.IsAtLeast(0));
  EXPECT_FALSE(map.IsAtLeast(1));
}

// Two switches of two hosts below each of two switches: at the lower ones one host is slow, at one
// of the upper ones one switch, and nobody there is fast enough to show what the others carry.
TEST(BandwidthMap, AsksHostsBeyondWhereABranchHasOnlySlowNeighbours) {
  Tree tree{.host_count = 8, .vertex_count = 15, .links = {}};
  std::vector<double> mbps;
  for (int host = 0; host < 8; ++host) {
    tree.links.push_back({host, 8 + host / 2, 20});
    mbps.push_back(host % 2 == 0 ? 40 : 10);
  }
  for (int i = 8; i < 12; ++i) {
    tree.links.push_back({i, i < 10 ? 12 : 13, 3});
    mbps.push_back(i == 9 ? 15 : 100);
  }
  tree.links.push_back({12, 14, 3});
  tree.links.push_back({13, 14, 3});
  mbps.insert(mbps.end(), {200, 200});

  const BandwidthMap map = Measure(tree, mbps);

  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(map.mbps()[i], std::min(mbps[i], i == 2 ? 25.0 : 40.0), 1.5) << i;
  }
  EXPECT_NEAR(map.mbps()[8], 50, 5);  // all that its hosts send
  EXPECT_NEAR(map.mbps()[9], 15, 1.5);
}

// As tests/bench/topology/bandwidth makes them: pairs of hosts get what the map says.
// Below the first of three switches one switch of hosts is slow, so that the other seems to be as
// slow until hosts beyond have shown what it carries: only then is it known what both of them can
// send.
TEST(BandwidthMap, MeasuresALinkAgainWhenMoreCanBeSentOverIt) {
  Tree tree{.host_count = 24, .vertex_count = 34, .links = {}};
  std::vector<double> mbps;
  for (int host = 0; host < 24; ++host) {
    tree.links.push_back({host, 24 + host / 4, 20});
    mbps.push_back(9);
  }
  for (int i = 0; i < 6; ++i) {
    tree.links.push_back({24 + i, 30 + i / 2, 3});
    mbps.push_back(i == 0 ? 9 : 36);
  }
  for (int i = 0; i < 3; ++i) {
    tree.links.push_back({30 + i, 33, 3});
    mbps.push_back(i == 0 ? 72 : 36);
  }

  const BandwidthMap map = Measure(tree, mbps);

  mbps[30] = 9 + 36;  // more nobody sends over it
  for (size_t i = 0; i < mbps.size(); ++i) {
    EXPECT_NEAR(map.mbps()[i], mbps[i], mbps[i] / 10) << i;
  }
}

// A link's rate, or what the hosts on one of its sides carry together if that is less.
std::vector<double> Carried(const Tree& tree, const std::vector<double>& mbps) {
  const std::function<double(int, int)> sent = [&](int vertex, int by) {
    double sum = 0;
    bool is_any = false;
    for (int i = 0; i < static_cast<int>(tree.links.size()); ++i) {
      const Link& link = tree.links[i];
      if (i != by && (link.u == vertex || link.v == vertex)) {
        sum += sent(link.u == vertex ? link.v : link.u, i);
        is_any = true;
      }
    }
    return is_any ? std::min(mbps[by], sum) : mbps[by];
  };
  std::vector<double> carried;
  for (int i = 0; i < static_cast<int>(tree.links.size()); ++i) {
    carried.push_back(std::min(sent(tree.links[i].u, i), sent(tree.links[i].v, i)));
  }
  return carried;
}

// As in the lab: four hosts a switch, switches two by two below others, some of each slow; TCP gets
// 92 to 97 % of what there is.
TEST(BandwidthMap, FindsWhatLinksCarryThoughTcpLosesSomeOfIt) {
  int links = 0, off = 0;
  for (int seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto any = [&random](double a, double b, double c) {
      return std::vector{a, b, c}[random() % 3];
    };
    const int hosts = seed % 2 == 0 ? 256 : 64;
    const int switches = hosts / 4, tops = switches / 2;
    Tree tree{.host_count = hosts, .vertex_count = hosts + switches + tops + 1, .links = {}};
    std::vector<double> mbps;
    for (int i = 0; i < switches; ++i) {
      tree.links.push_back({hosts + i, hosts + switches + i / 2, 50});
      mbps.push_back(any(9, 18, 36));
    }
    for (int i = 0; i < tops; ++i) {
      tree.links.push_back({hosts + switches + i, hosts + switches + tops, 50});
      mbps.push_back(any(18, 36, 72));
    }
    for (int i = 0; i < hosts; ++i) {
      tree.links.push_back({i, hosts + i / 4, 50});
      mbps.push_back(random() % 100 < 85 ? 9 : 4.5);
    }
    std::uniform_real_distribution<double> share(0.92, 0.97);

    const BandwidthMap map = Measure(tree, mbps, [&] { return share(random); });

    const std::vector<double> carried = Carried(tree, mbps);
    for (size_t i = 0; i < mbps.size(); ++i) {
      EXPECT_NEAR(map.mbps()[i] / carried[i], 1, 0.16) << seed << ": " << i;
      off += std::abs(map.mbps()[i] / carried[i] - 1) > 0.1 ? 1 : 0;
      ++links;
    }
    EXPECT_LE(map.stages(), 40) << seed;
  }
  EXPECT_LE(off * 300, links) << off << " of " << links << " links are off by more than 10 %";
}

TEST(BandwidthMap, SaysOfPairsWhatTheyGet) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](std::vector<double> of) { return of[random() % of.size()]; };
    Tree tree{.host_count = 32, .vertex_count = 32 + 8 + 4 + 1, .links = {}};
    std::vector<double> mbps;
    for (int host = 0; host < 32; ++host) {
      tree.links.push_back({host, 32 + host / 4, 20});
      mbps.push_back(pick({16, 16, 16, 16, 16, 16, 8}));
    }
    for (int i = 0; i < 8; ++i) {
      tree.links.push_back({32 + i, 40 + i / 2, 3});
      mbps.push_back(pick({16, 32, 64}));
    }
    for (int i = 0; i < 4; ++i) {
      tree.links.push_back({40 + i, 44, 3});
      mbps.push_back(pick({32, 64, 128}));
    }

    const BandwidthMap map = Measure(tree, mbps);

    const Rooted rooted = HangUp(tree, 44);
    const auto least = [&](const std::vector<double>& rates, int a, int b) {
      double rate = 1e9;
      for (const int end : {a, b}) {
        for (int at = end; at != rooted.Ancestor(a, b); at = rooted.parent[at]) {
          rate = std::min(rate, rates[rooted.parent_link[at]]);
        }
      }
      return rate;
    };
    int right = 0;
    int pairs = 0;
    for (int a = 0; a < 32; ++a) {
      for (int b = 0; b < a; ++b) {
        const double ratio = least(map.mbps(), a, b) / least(mbps, a, b);
        right += ratio > 0.9 && ratio < 1.1 ? 1 : 0;
        ++pairs;
      }
    }
    EXPECT_GE(right, 0.98 * pairs) << seed;
    EXPECT_LE(map.stages(), 60) << seed;
  }
}

TEST(BandwidthMap, SaysWhereTheHostsCouldNotSendMore) {
  const Tree tree = ThreeByThree();
  std::vector<double> mbps(tree.links.size(), 100);
  mbps[9] = mbps[10] = mbps[11] = 10000;

  const BandwidthMap map = Measure(tree, mbps);

  EXPECT_NEAR(map.mbps()[9], 300, 30);
  EXPECT_TRUE(map.IsAtLeast(9));
}

TEST(BandwidthMap, NeedsStagesByDepthAndNotByHosts) {
  const sim::Truth truth = *sim::MakeFamily("grid256", 2);
  const Tree tree = Simplified(sim::TreeOf(truth));

  const BandwidthMap map = Measure(tree, std::vector<double>(tree.links.size(), 50));

  EXPECT_LE(map.stages(), 60);
  EXPECT_GE(*std::min_element(map.mbps().begin(), map.mbps().end()), 45);
}

// Switches of four branches above hosts by eight; every fourth host and switch is slow, or none is.
int StagesOf(int hosts, int levels, bool is_even) {
  std::vector<int> at_level{hosts};
  for (int level = 1; level < levels; ++level) {
    at_level.push_back(level == 1 ? hosts / 8 : at_level.back() / 4);
  }
  Tree tree{.host_count = hosts, .vertex_count = hosts, .links = {}};
  std::vector<double> mbps;
  int first = 0;
  double rate = 10;
  for (size_t level = 0; level < at_level.size(); ++level) {
    const bool is_top = level + 1 == at_level.size();
    const int above = is_top ? 1 : at_level[level + 1];
    for (int i = 0; i < at_level[level]; ++i) {
      tree.links.push_back({first + i, tree.vertex_count + i * above / at_level[level], 20});
      mbps.push_back(is_even || i % 4 != 1 ? rate : rate / 2);
    }
    first = tree.vertex_count;
    tree.vertex_count += above;
    rate *= 3;
  }
  return Measure(tree, mbps).stages();
}

TEST(BandwidthMap, NeedsStagesByDepthForAnyNumberOfHosts) {
  for (const bool is_even : {true, false}) {
    for (const auto& [hosts, levels] :
         {std::pair(64, 2), {64, 3}, {256, 3}, {1024, 3}, {1024, 4}}) {
      EXPECT_LE(StagesOf(hosts, levels, is_even), 5 * levels)
          << hosts << " hosts, " << levels << " levels" << (is_even ? ", even" : "");
    }
  }
}

// As where a file has switches that lead to no host.
TEST(BandwidthMap, PassesOverSwitchesWithoutHosts) {
  Tree tree = ThreeByThree();
  tree.vertex_count = 16;
  tree.links.push_back({12, 13, 3});
  tree.links.push_back({13, 14, 3});
  tree.links.push_back({9, 15, 3});

  const BandwidthMap map = Measure(tree, std::vector<double>(tree.links.size(), 100));

  for (size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(map.mbps()[i], 100, 10);
  }
}

TEST(BandwidthMap, HasNothingToMeasureWithoutLinks) {
  BandwidthMap map(Tree{.host_count = 1, .vertex_count = 1, .links = {}});

  EXPECT_TRUE(map.Next().empty());
}

}  // namespace
}  // namespace sekisho::topology
