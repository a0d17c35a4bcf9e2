// SPDX-License-Identifier: Apache-2.0
#include "rankmap/lift.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rankmap/box_layout.h"
#include "rankmap/generate.h"
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

TEST_F(Lifting, RefusesWhatHasNoLevels) {
  const Pattern random = *Generate("random", {.ranks = 512, .degree = 4, .seed = 5});
  Random chance(5);

  EXPECT_FALSE(Lift(MakeGraph(random, Weight::kBytes, 512), random, network_, {}, chance, [] { return false; }, moves_));
}

}  // namespace
}  // namespace sekisho::rankmap
