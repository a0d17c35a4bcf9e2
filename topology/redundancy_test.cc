// SPDX-License-Identifier: Apache-2.0
#include "topology/redundancy.h"

#include <gmock/gmock.h>

#include "topology/sim/families.h"
#include "topology/sim/trial.h"

namespace sekisho::topology {
namespace {

std::vector<SeveralWays> Found(std::string_view family, uint64_t seed) {
  const sim::Truth truth = *sim::MakeFamily(family, seed);
  return sim::RunTrial(truth, "fast", false, seed, 1000)->outcome.several_ways;
}

TEST(SeveralWays, AreSeenWhereEachPairTakesOneOfFourSwitches) {
  for (uint64_t seed = 301; seed < 304; ++seed) {
    EXPECT_EQ(Found("spine256", seed).size(), 1u) << seed;
  }
}

TEST(SeveralWays, AreNotSeenWhereThereIsOne) {
  for (const std::string_view family : {"single64", "single64lab", "grid256lab", "deep128", "vm192",
                                        "skew256", "grid256busy", "star48lab"}) {
    EXPECT_THAT(Found(family, 305), ::testing::IsEmpty()) << family;
  }
}

TEST(SeveralWays, KeepTheirSwitchWhereHostsAreLost) {
  const Tree before{
      .host_count = 5,
      .vertex_count = 8,
      .links = {{0, 6, 1}, {1, 6, 1}, {2, 5, 1}, {3, 5, 1}, {4, 7, 1}, {5, 7, 1}, {6, 7, 1}}};
  const Tree after = Without(before, {true, false, false, false, false});

  const std::vector<SeveralWays> renumbered = Renumbered({{7, 9}, {6, 9}}, before, after);

  ASSERT_EQ(renumbered.size(), 1u);  // there is no 6 any more
  EXPECT_EQ(renumbered[0].vertex, HangUp(after, 1).parent[4]);
}

TEST(SeveralWays, AreNotSpokenOfWithoutMeasurements) {
  const Tree tree{.host_count = 2, .vertex_count = 3, .links = {{0, 2, 10}, {1, 2, 10}}};

  EXPECT_THAT(FindSeveralWays(tree, {}), ::testing::IsEmpty());
  EXPECT_THAT(FindSeveralWays(tree, {{0, 1, 20, 1}}), ::testing::IsEmpty());
}

}  // namespace
}  // namespace sekisho::topology
