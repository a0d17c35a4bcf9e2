// SPDX-License-Identifier: Apache-2.0
#include "allocator/policy.h"

#include <gtest/gtest.h>

namespace sekisho::allocator {
namespace {

bool IsBetter(const char* policy, const Candidate& a, const Candidate& b) {
  return FindPolicy(policy)->is_better(a, b);
}

TEST(PaperPolicy, PrefersFewerRunningJobsThenTheFasterClock) {
  EXPECT_TRUE(IsBetter("paper", {1, 100}, {2, 900}));
  EXPECT_TRUE(IsBetter("paper", {1, 450}, {1, 200}));
  EXPECT_FALSE(IsBetter("paper", {1, 200}, {1, 200}));
}

TEST(PaperPolicy, LooksNeitherAtLoadNorAtRoom) {
  EXPECT_FALSE(IsBetter("paper", {1, 200, 0.0, true}, {1, 200, 9.0, false}));
}

TEST(LoadPolicy, PrefersRoomThenTheLeastLoad) {
  EXPECT_TRUE(IsBetter("load", {5, 100, 0.9, true}, {0, 900, 0.1, false}));
  EXPECT_TRUE(IsBetter("load", {5, 100, 0.1, true}, {0, 900, 0.2, true}));
  EXPECT_TRUE(IsBetter("load", {0, 100, 0.1, true}, {1, 900, 0.1, true}));
}

TEST(Policy, IsRefusedByNameIfUnknown) { EXPECT_FALSE(FindPolicy("best").ok()); }

}  // namespace
}  // namespace sekisho::allocator
