// SPDX-License-Identifier: Apache-2.0
// What is learned of round trips, and what is not.
#include "transport/pm/rtt.h"

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

constexpr Nanos kUsual = 20 * kMicrosecond;

// After 100 round trips of `rtt`, from `now` on.
void Learn(Rtt& rtt, Nanos took, Nanos now) {
  for (int i = 0; i < 100; ++i) rtt.Sample(took, 0, now + i * took);
}

TEST(Rtt, OneThatWaitedForSomebodyWhoWasStoppedChangesNothing) {
  Rtt rtt;
  Learn(rtt, kUsual, 0);
  const Nanos before = rtt.ProbeTimeout();
  for (int i = 0; i < 3; ++i) {
    rtt.Sample(300 * kMillisecond, 0, kSecond + i);
    EXPECT_EQ(rtt.ProbeTimeout(), before);
    EXPECT_EQ(rtt.latest(), kUsual);
    rtt.Sample(kUsual, 0, kSecond + i);
  }
}

TEST(Rtt, APathThatHasBecomeLongerIsBelieved) {
  Rtt rtt;
  Learn(rtt, kUsual, 0);
  Learn(rtt, 50 * kMillisecond, kSecond);
  EXPECT_GT(rtt.smoothed(), 49 * kMillisecond);
  EXPECT_GT(rtt.ProbeTimeout(), 50 * kMillisecond);
}

TEST(Rtt, TheSmallestOfMinutesOutlivesTheOneOfSeconds) {
  Rtt rtt;
  Learn(rtt, kUsual, 0);
  Learn(rtt, 5 * kMillisecond, 20 * kSecond);
  EXPECT_EQ(rtt.minimum(), 5 * kMillisecond);
  EXPECT_EQ(rtt.lowest(), kUsual);
  Learn(rtt, 5 * kMillisecond, 700 * kSecond);
  Learn(rtt, 5 * kMillisecond, 1100 * kSecond);
  EXPECT_EQ(rtt.lowest(), 5 * kMillisecond);
}

}  // namespace
}  // namespace sekisho::pm
