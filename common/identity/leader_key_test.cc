// SPDX-License-Identifier: Apache-2.0
#include "common/identity/leader_key.h"

#include <gtest/gtest.h>

namespace sekisho::identity {
namespace {

TEST(LeaderKey, SignsOrdersThatItsOpenHalfKnowsAgain) {
  const LeaderKey key = MakeLeaderKey();

  EXPECT_TRUE(IsOrderSigned("release", SignOrder("release", key), key.open));
}

TEST(LeaderKey, KnowsNoOtherOrderAndNoOthersOrder) {
  const LeaderKey key = MakeLeaderKey();
  const std::string signature = SignOrder("release", key);

  EXPECT_FALSE(IsOrderSigned("cancel", signature, key.open));
  EXPECT_FALSE(IsOrderSigned("release", signature, MakeLeaderKey().open));
  EXPECT_FALSE(IsOrderSigned("release", "", key.open));
  EXPECT_FALSE(IsOrderSigned("release", signature, ""));
}

}  // namespace
}  // namespace sekisho::identity
