// SPDX-License-Identifier: Apache-2.0
#include "transport/pm/spin_history.h"

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

constexpr bool kAlone = false, kShared = true, kInVain = true, kSomethingCame = false;

// A wait that ends with what it was for.
void WaitFor(SpinHistory& history, Nanos& now, Nanos time) {
  history.Begin(now, kAlone);
  now += time;
  history.Found(now);
}

// How long it looks if nothing comes; looks take no time.
Nanos Looks(SpinHistory& history, Nanos& now) {
  history.Begin(now, kAlone);
  Nanos time = 0;
  while (history.MayLookAgain(now + time, kSomethingCame)) time += 100;
  now += time;
  return time;
}

TEST(SpinHistory, WhoNeverFoundAnythingHardlyLooks) {
  SpinHistory history;
  Nanos now = kSecond;
  EXPECT_EQ(Looks(history, now), SpinHistory::kLeast);
}

TEST(SpinHistory, LooksTwiceAsLongAsItPaid) {
  SpinHistory history;
  Nanos now = kSecond;
  WaitFor(history, now, 10 * kMicrosecond);
  EXPECT_EQ(Looks(history, now), 21 * kMicrosecond);
  WaitFor(history, now, 40 * kMicrosecond);
  EXPECT_EQ(Looks(history, now), SpinHistory::kMost);
}

TEST(SpinHistory, ForgetsByHalvesWhatPaysNoMore) {
  SpinHistory history;
  Nanos now = kSecond;
  WaitFor(history, now, 16 * kMicrosecond);
  WaitFor(history, now, kMicrosecond);
  EXPECT_EQ(Looks(history, now), 17 * kMicrosecond) << "of 8";
  WaitFor(history, now, kMillisecond);
  EXPECT_EQ(Looks(history, now), 9 * kMicrosecond) << "what comes so late is slept for";
  for (int i = 0; i < 20; ++i) WaitFor(history, now, kMillisecond);
  EXPECT_EQ(Looks(history, now), SpinHistory::kLeast);
}

TEST(SpinHistory, WhoSharesAProcessorLooksTenTimesInVain) {
  SpinHistory history;
  Nanos now = kSecond;
  WaitFor(history, now, 20 * kMicrosecond);
  for (int wait = 0; wait < 2; ++wait) {
    history.Begin(now, kShared);
    for (int look = 1; look < 10; ++look) {
      EXPECT_TRUE(history.MayLookAgain(now, kInVain)) << look;
      EXPECT_TRUE(history.MayLookAgain(now, kSomethingCame)) << "that does not count";
    }
    EXPECT_FALSE(history.MayLookAgain(now, kInVain));
    EXPECT_FALSE(history.MayLookAgain(now, kSomethingCame)) << "until the wait is over";
  }

  history.Begin(now, kAlone);
  for (int look = 0; look < 100; ++look) EXPECT_TRUE(history.MayLookAgain(now, kInVain));
}

}  // namespace
}  // namespace sekisho::pm
