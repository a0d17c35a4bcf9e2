// SPDX-License-Identifier: Apache-2.0
#include "transport/pm/yield_history.h"

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

constexpr Nanos kShort = 10 * kMicrosecond;  // others ran
constexpr Nanos kLong = 4 * kMillisecond;    // others computed

// Yields as often as it may for a second, each time or now and then to who computes; how often that
// was.
int YieldsInASecond(YieldHistory& history, Nanos& now, Nanos took, int long_every = 0) {
  int count = 0;
  for (const Nanos end = now + kSecond; now < end; now += kMicrosecond) {
    if (!history.MayYield(now)) continue;
    ++count;
    const Nanos time = long_every > 0 && count % long_every == 0 ? kLong : took;
    history.Note(now, now + time);
    now += time;
  }
  return count;
}

TEST(YieldHistory, WhoYieldsToNobodyGoesOn) {
  YieldHistory history;
  Nanos now = kSecond;
  EXPECT_EQ(YieldsInASecond(history, now, kMicrosecond), 500'000);
  EXPECT_FALSE(history.others_ran());
}

TEST(YieldHistory, WhoYieldsToOneWhoAnswersGoesOn) {
  YieldHistory history;
  Nanos now = kSecond;
  EXPECT_GT(YieldsInASecond(history, now, kShort), 90'000);
  EXPECT_TRUE(history.others_ran());
}

TEST(YieldHistory, WhoYieldsToThoseWhoComputeDoesSoTenTimesASecondInTheEnd) {
  YieldHistory history;
  Nanos now = kSecond;
  (void)YieldsInASecond(history, now, kLong);
  const int count = YieldsInASecond(history, now, kLong);
  EXPECT_LE(count, 10);
  EXPECT_GE(count, 9) << "they may have ended";

  // One in fifty is enough: of many processes on this processor some compute.
  EXPECT_LT(YieldsInASecond(history, now, kShort, 50), 1'000);
}

TEST(YieldHistory, AProcessorIsSharedWithWhoRanAtTheLastYieldOrComputesMeanwhile) {
  YieldHistory history;
  Nanos now = kSecond;
  EXPECT_FALSE(history.is_shared(now));
  history.Note(now, now + kShort);
  EXPECT_TRUE(history.is_shared(now + kSecond));
  history.Note(now + kSecond, now + kSecond + kMicrosecond);
  EXPECT_FALSE(history.is_shared(now + kSecond + kMicrosecond));

  now += 2 * kSecond;
  history.Note(now, now + kLong);
  EXPECT_TRUE(history.is_shared(now + kLong));
  EXPECT_FALSE(history.is_shared(now + kLong + YieldHistory::kLeastPause));
}

TEST(YieldHistory, ALongOneNowAndThenChangesLittle) {
  YieldHistory history;
  Nanos now = kSecond;
  EXPECT_GT(YieldsInASecond(history, now, kShort, 5'000), 80'000);

  history.Note(now, now + kLong);
  EXPECT_TRUE(history.MayYield(now + kLong + YieldHistory::kLeastPause));
}

TEST(YieldHistory, ThoseWhoComputedAreForgottenThoughNobodyElseRan) {
  YieldHistory history;
  Nanos now = kSecond;
  (void)YieldsInASecond(history, now, kLong);
  (void)YieldsInASecond(history, now, kMicrosecond);
  (void)YieldsInASecond(history, now, kMicrosecond);

  history.Note(now, now + kLong);
  EXPECT_TRUE(history.MayYield(now + kLong + YieldHistory::kLeastPause));
}

}  // namespace
}  // namespace sekisho::pm
