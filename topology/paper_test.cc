// SPDX-License-Identifier: Apache-2.0
#include "topology/paper.h"

#include <gmock/gmock.h>

#include "topology/sim/families.h"
#include "topology/sim/trial.h"

namespace sekisho::topology {
namespace {

TEST(PaperMethod, FindsTheExactTreeWhereThereIsNoNoise) {
  for (const uint64_t seed : {1, 2}) {
    const auto trial = sim::RunTrial(*sim::MakeFamily("exact64", seed), "paper", false, seed, 2000);

    ASSERT_TRUE(trial.ok());
    EXPECT_EQ(trial->score.robinson_foulds, 0);
  }
}

TEST(PaperMethod, NamesAHostThatNeverAnswers) {
  sim::Truth truth = *sim::MakeFamily("exact64", 3);
  truth.is_dead[5] = true;

  const auto trial = sim::RunTrial(truth, "paper", false, 3, 2000);

  ASSERT_TRUE(trial.ok());
  ASSERT_EQ(trial->outcome.excluded.size(), 1u);
  EXPECT_EQ(trial->outcome.excluded[0].host, 5);
  EXPECT_EQ(trial->score.hosts_lost, 0);
}

TEST(PaperMethod, PlacesTwoHosts) {
  const auto trial = sim::RunTrial(*sim::MakeFamily("tiny2", 1), "paper", false, 1, 2000);

  ASSERT_TRUE(trial.ok());
  EXPECT_EQ(trial->outcome.tree.links.size(), 1u);
}

}  // namespace
}  // namespace sekisho::topology
