// SPDX-License-Identifier: Apache-2.0
#include "topology/bandwidth.h"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "topology/sim/families.h"
#include "topology/sim/flows.h"

namespace sekisho::topology {
namespace {

// Runs the map against fair sharing; fails the test if two transfers of a stage share a link.
BandwidthMap Measure(const Tree& tree, const std::vector<double>& mbps) {
  BandwidthMap map(tree);
  for (;;) {
    const std::vector<Transfer> stage = map.Next();
    if (stage.empty()) {
      return map;
    }
    std::vector<std::pair<int, int>> flows;
    std::set<int> links;
    for (const Transfer& transfer : stage) {
      EXPECT_TRUE(links.insert(transfer.left).second);
      EXPECT_TRUE(links.insert(transfer.right).second);
      flows.insert(flows.end(), transfer.flows.begin(), transfer.flows.end());
    }
    const std::vector<double> rates = sim::FairRates(tree, mbps, flows);
    size_t next = 0;
    for (const Transfer& transfer : stage) {
      double sum = 0;
      for (size_t i = 0; i < transfer.flows.size(); ++i) {
        sum += rates[next++];
      }
      map.Report(transfer, sum);
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
