// SPDX-License-Identifier: Apache-2.0
#include "topology/confidence.h"

#include <gmock/gmock.h>

namespace sekisho::topology {
namespace {

TEST(Confidence, OfASwitchIsThatOfItsLeastSureLink) {
  Tree tree{.host_count = 4, .vertex_count = 7, .links = {}};
  tree.links = {{0, 4, 20, 1}, {1, 4, 20, 1},  {2, 5, 20, 1},
                {3, 5, 20, 1}, {4, 6, 5, 0.7}, {5, 6, 5, 0.9}};

  EXPECT_THAT(SwitchConfidence(tree), ::testing::ElementsAre(1, 1, 1, 1, 0.7, 0.9, 0.7));
}

}  // namespace
}  // namespace sekisho::topology
