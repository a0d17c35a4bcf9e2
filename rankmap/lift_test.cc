// SPDX-License-Identifier: Apache-2.0
#include "rankmap/lift.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rankmap/box_layout.h"
#include "rankmap/generate.h"
#include "rankmap/levels.h"
#include "rankmap/network_format.h"

namespace sekisho::rankmap {
namespace {

class Lifting : public testing::Test {
 protected:
  // Bruck's ranks shuffled: nothing to be learned from their numbers.
  Pattern pattern_ = *Generate("bruck", {.ranks = 512, .bytes = 2048, .permute = 3});
  Network network_ = *ParseNetworkSpec("torus:8x8x8");
  Graph graph_ = MakeGraph(pattern_, Weight::kBytes, 512);
  int64_t moves_ = 0;

  Values Lifted(Objective objective, int base, uint64_t seed = 5) {
    Random random(seed);
    const auto placement = Lift(graph_, pattern_, network_, {.effort = 0.25, .base = base, .objective = objective},
                                random, [] { return false; }, moves_);
    EXPECT_TRUE(placement);
    return placement ? Evaluate(pattern_, network_, *placement) : Values{};
  }
};

TEST_F(Lifting, KeepsHeavyPairsTogether) { EXPECT_LT(Lifted(Objective::kHopBytes, 64).avg_hops, 1.5); }

TEST_F(Lifting, BalancesTotalLoads) {
  const Values by_hops = Lifted(Objective::kHopBytes, 64);
  const int64_t moves_by_hops = moves_;
  const Values by_load = Lifted(Objective::kMaxLink, 64);

  EXPECT_GT(moves_by_hops, 1'000'000) << "64 cells twice from nothing";
  EXPECT_GT(moves_, moves_by_hops + 1'000'000) << "and loads balanced";
  EXPECT_GT(by_load.max_link, 0);
  EXPECT_LT(static_cast<double>(by_load.max_link), 0.95 * static_cast<double>(by_hops.max_link));
}

TEST_F(Lifting, BalancesTheLoadsOfEveryStep) {
  const Values by_hops = Lifted(Objective::kHopBytes, 64);
  int64_t by_step = by_hops.step_sum;
  for (uint64_t seed = 5; seed < 8 && by_step >= by_hops.step_sum; ++seed) {  // one lift in six ends no better
    by_step = Lifted(Objective::kSteps, 16, seed).step_sum;
  }

  EXPECT_GT(by_step, 0);
  EXPECT_LT(by_step, by_hops.step_sum);
}

TEST_F(Lifting, LaysOutEveryRankOfAPartFromNothing) {
  const Pattern part = *Generate("bruck", {.ranks = 8, .bytes = 2048});
  Random random(5);
  const Stop never = [] { return false; };
  BoxLayout layout(network_, 1, random, never);

  Cells cells = layout.Balance(part, {2, 2, 2}, {}, Objective::kSteps,
                               {.hot = 1, .cold = 0.1, .moves = 1024, .is_from_nothing = true});

  std::sort(cells.begin(), cells.end());
  EXPECT_THAT(cells, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(Lifting, KnowsAnyNumberOfDimensions) {
  const Pattern pattern = *Generate("bruck", {.ranks = 256, .bytes = 2048, .permute = 3});
  const Network network = *ParseNetworkSpec("torus:4x4x4x2x2");
  Random random(5);

  const auto placement = Lift(MakeGraph(pattern, Weight::kBytes, 256), pattern, network, {.effort = 0.1, .base = 16}, random,
                              [] { return false; }, moves_);

  ASSERT_TRUE(placement);
  EXPECT_LT(Evaluate(pattern, network, *placement).avg_hops, 1.34) << "bisections come to 1.36";
}

TEST(Boxes, TakeNodesThatAreNearToEachOther) {
  const auto box = [](const char* network, int size) {
    const Network grid = *ParseNetworkSpec(network);
    return FindBox(grid.grid(), std::vector<int>(grid.grid().dims.size(), 1), size);
  };

  EXPECT_THAT(box("torus:16x16x16", 64), testing::ElementsAre(4, 4, 4));
  EXPECT_THAT(box("torus:12x10x14", 60), testing::ElementsAre(3, 10, 2)) << "ten are a ring there";
  EXPECT_THAT(box("mesh:12x10x14", 60), testing::ElementsAre(6, 5, 2)) << "and a line here";
  EXPECT_THAT(box("torus:4x4x4x8x2", 64), testing::ElementsAre(4, 4, 4, 1, 1)) << "whole rings, not halves of several";
  EXPECT_TRUE(box("torus:16x16x16", 63).empty());
}

TEST_F(Lifting, RefusesWhatHasNoLevels) {
  const Pattern random = *Generate("random", {.ranks = 512, .degree = 4, .seed = 5});
  Random chance(5);

  EXPECT_FALSE(Lift(MakeGraph(random, Weight::kBytes, 512), random, network_, {}, chance, [] { return false; }, moves_));
}

}  // namespace
}  // namespace sekisho::rankmap
