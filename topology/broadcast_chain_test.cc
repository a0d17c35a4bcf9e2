// SPDX-License-Identifier: Apache-2.0
#include "topology/broadcast_chain.h"

#include <gmock/gmock.h>

namespace sekisho::topology {
namespace {

TEST(BroadcastChain, EachCopiesFromTheOneBeforeIt) {
  const BroadcastChain chain({3, 1, 4});

  EXPECT_EQ(chain.Before(3), -1);
  EXPECT_EQ(chain.Before(1), 3);
  EXPECT_EQ(chain.Before(4), 1);
}

TEST(BroadcastChain, GoesOnBeforeAHostThatIsGone) {
  BroadcastChain chain({0, 1, 2, 3, 4});
  chain.Lose(2);
  chain.Lose(1);
  chain.Fail(3);

  EXPECT_EQ(chain.Before(3), 0);
  EXPECT_EQ(chain.Before(4), 3);
}

TEST(BroadcastChain, GivesUpOnlyAfterAllHaveFailedSeveralTimes) {
  BroadcastChain chain({0, 1, 2});
  std::vector<int> asked;
  while (chain.Before(2) >= 0) {
    asked.push_back(chain.Before(2));
    chain.Fail(2);
  }

  EXPECT_THAT(asked, testing::ElementsAre(1, 0, 1, 0, 1, 0));
}

}  // namespace
}  // namespace sekisho::topology
