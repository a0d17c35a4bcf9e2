// SPDX-License-Identifier: Apache-2.0
#include "common/back_off.h"

#include <set>

#include <gtest/gtest.h>

namespace sekisho {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirst{100}, kLongest{5000};
constexpr uint64_t kShortest = 0;

TEST(BackOff, EachPauseIsTwiceAsLongAsTheOneBeforeUpToTheLongest) {
  BackOff back_off(kFirst, kLongest);
  EXPECT_TRUE(back_off.is_first());

  EXPECT_EQ(back_off.After(true, kShortest), milliseconds(50));
  for (const int most : {200, 400, 800, 1600, 3200, 5000, 5000, 5000}) {
    EXPECT_EQ(back_off.After(false, kShortest), milliseconds(most / 2));
    EXPECT_FALSE(back_off.is_first());
  }
}

TEST(BackOff, OnceItHasBeenUpItBeginsAnew) {
  BackOff back_off(kFirst, kLongest);
  for (int i = 0; i < 10; ++i) {
    back_off.After(false, kShortest);
  }

  EXPECT_EQ(back_off.After(true, kShortest), milliseconds(50));
  EXPECT_TRUE(back_off.is_first());
}

TEST(BackOff, ManyThatLostOneServerComeBackAtDifferentTimesInTheUpperHalf) {
  std::set<milliseconds> pauses;
  for (uint64_t chance = 0; chance < 10'000; ++chance) {
    BackOff back_off(kFirst, kLongest);
    pauses.insert(back_off.After(false, chance * 0x9e3779b97f4a7c15));
  }

  EXPECT_EQ(*pauses.begin(), milliseconds(100));
  EXPECT_EQ(*pauses.rbegin(), milliseconds(200));
  EXPECT_EQ(pauses.size(), 101u);
}

TEST(BackOff, ALimitOfNothingIsNoPause) {
  EXPECT_EQ(BackOff(milliseconds(0), milliseconds(0)).After(false, 7), milliseconds(0));
}

}  // namespace
}  // namespace sekisho
