// SPDX-License-Identifier: Apache-2.0
// When the descriptor of a timer becomes readable that is set as seldom as possible.
#include "transport/pm/lazy_timer.h"

#include <poll.h>
#include <time.h>

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

Nanos Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

bool IsReadable(const LazyTimer& timer, int timeout_ms) {
  pollfd waiting = {timer.fd(), POLLIN, 0};
  return poll(&waiting, 1, timeout_ms) == 1;
}

class LazyTimerTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_FALSE(timer_.Open()); }

  LazyTimer timer_;
};

TEST_F(LazyTimerTest, IsReadableWhenItIsDue) {
  const Nanos now = Now();
  timer_.Set(now + 5 * kMillisecond, now);
  EXPECT_FALSE(IsReadable(timer_, 0));
  EXPECT_TRUE(IsReadable(timer_, 10'000));
  EXPECT_GE(Now(), now + 5 * kMillisecond);
}

TEST_F(LazyTimerTest, ALaterDeadlineLeavesItAsItIs) {
  const Nanos now = Now();
  timer_.Set(now + 5 * kMillisecond, now);
  timer_.Set(now + 100 * kSecond, now);
  EXPECT_TRUE(IsReadable(timer_, 10'000));
}

TEST_F(LazyTimerTest, AnEarlierDeadlineCounts) {
  const Nanos now = Now();
  timer_.Set(now + 100 * kSecond, now);
  timer_.Set(now + 5 * kMillisecond, now);
  EXPECT_TRUE(IsReadable(timer_, 10'000));
}

TEST_F(LazyTimerTest, IsQuietUntilItIsSetAgain) {
  Nanos now = Now();
  timer_.Set(now + kMillisecond, now);
  ASSERT_TRUE(IsReadable(timer_, 10'000));
  timer_.Quiet(Now(), true);
  EXPECT_FALSE(IsReadable(timer_, 0));
  now = Now();
  timer_.Set(now + kMillisecond, now);
  EXPECT_TRUE(IsReadable(timer_, 10'000));
}

// A timer for 200 us ahead that may be late: whether it goes off 700 us ahead.
bool GoesOffLater(LazyTimer& timer) {
  const Nanos now = Now();
  timer.Set(now + 200 * kMicrosecond, now, true);
  EXPECT_TRUE(IsReadable(timer, 10'000));
  return Now() >= now + 700 * kMicrosecond;
}

TEST_F(LazyTimerTest, OneThatGoesOffInVainIsSetFartherAhead) {
  for (int i = 0; i < 3; ++i) {
    const Nanos now = Now();
    timer_.Set(now + 10 * kMicrosecond, now, true);
    ASSERT_TRUE(IsReadable(timer_, 10'000));
    timer_.Quiet(Now(), false);
  }
  EXPECT_TRUE(GoesOffLater(timer_));
  // What may not be late counts all the same.
  const Nanos now = Now();
  timer_.Set(now + 100 * kSecond, now, true);
  timer_.Set(now + kMillisecond, now);
  EXPECT_TRUE(IsReadable(timer_, 10'000));
}

TEST_F(LazyTimerTest, OneThatWentOffUnseenIsSetAnew) {
  const Nanos now = Now();
  timer_.Set(now + kMillisecond, now);
  ASSERT_TRUE(IsReadable(timer_, 10'000));
  timer_.Set(now + 100 * kSecond, now + 2 * kMillisecond);
  EXPECT_FALSE(IsReadable(timer_, 0));
}

}  // namespace
}  // namespace sekisho::pm
