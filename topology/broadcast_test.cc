// SPDX-License-Identifier: Apache-2.0
#include "topology/broadcast.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>

#include "topology/sim/families.h"

namespace sekisho::topology {
namespace {

TEST(Broadcast, CrossesEveryLinkOnceInEachDirection) {
  const sim::Truth truth = *sim::MakeFamily("grid256", 3);
  const Tree tree = sim::TreeOf(truth);
  const std::vector<double> same(tree.links.size(), 100);

  const std::vector<int> order = BroadcastOrder(tree, 17);

  EXPECT_EQ(order.size(), 256u);
  EXPECT_EQ(order[0], 17);
  EXPECT_EQ(PipelineMbps(tree, same, order), 100);
}

TEST(Broadcast, BeatsARandomOrderByFar) {
  const sim::Truth truth = *sim::MakeFamily("single64", 3);
  const Tree tree = sim::TreeOf(truth);
  const std::vector<double> same(tree.links.size(), 100);
  std::vector<int> order = BroadcastOrder(tree, 0);
  std::mt19937 random(1);
  std::shuffle(order.begin() + 1, order.end(), random);

  EXPECT_LT(PipelineMbps(tree, same, order), 40);
}

TEST(Broadcast, LeavesOutHostsThatAreOnNoTree) {
  const Tree tree{.host_count = 4, .vertex_count = 5, .links = {{0, 4, 1}, {1, 4, 1}, {3, 4, 1}}};

  EXPECT_THAT(BroadcastOrder(tree, 3), ::testing::UnorderedElementsAre(0, 1, 3));
}

}  // namespace
}  // namespace sekisho::topology
