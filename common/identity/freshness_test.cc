// SPDX-License-Identifier: Apache-2.0
#include "common/identity/freshness.h"

#include <gtest/gtest.h>

#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

using std::chrono::seconds;
using test::TestNow;

constexpr seconds kWindow(300);

TEST(Freshness, TakesTimesWithinTheWindowOnEitherSide) {
  for (const int offset : {-300, 0, 300}) {
    EXPECT_FALSE(CheckFreshness(TestNow() + seconds(offset), TestNow(), kWindow).has_value());
  }
  EXPECT_EQ(CheckFreshness(TestNow() - seconds(301), TestNow(), kWindow)->reason,
            Reason::kRequestTooOld);
  EXPECT_EQ(CheckFreshness(TestNow() + seconds(301), TestNow(), kWindow)->reason,
            Reason::kRequestFromTheFuture);
}

TEST(Freshness, SurvivesAnyNumber) {
  EXPECT_EQ(CheckFreshness(Time::min(), TestNow(), kWindow)->reason, Reason::kRequestTooOld);
  EXPECT_EQ(CheckFreshness(Time::max(), TestNow(), kWindow)->reason, Reason::kRequestFromTheFuture);
}

TEST(ReplaySet, TakesARequestOnce) {
  ReplaySet seen(kWindow, 100);

  EXPECT_FALSE(seen.Insert("/CN=a", "1", TestNow(), TestNow()).has_value());
  EXPECT_FALSE(seen.Insert("/CN=a", "2", TestNow(), TestNow()).has_value());
  EXPECT_FALSE(seen.Insert("/CN=b", "1", TestNow(), TestNow()).has_value());
  EXPECT_EQ(seen.Insert("/CN=a", "1", TestNow(), TestNow() + seconds(5))->reason,
            Reason::kRequestReplayed);
}

TEST(ReplaySet, RemembersAsLongAsTheRequestIsFresh) {
  ReplaySet seen(kWindow, 100);
  const Time ahead = TestNow() + kWindow;  // a clock that runs ahead, within the window
  seen.Insert("/CN=a", "1", ahead, TestNow());

  // The last moment at which CheckFreshness would still take it.
  EXPECT_TRUE(seen.Insert("/CN=a", "1", ahead, ahead + kWindow).has_value());

  seen.Insert("/CN=b", "2", ahead + kWindow, ahead + kWindow + seconds(1));
  EXPECT_FALSE(seen.Contains("/CN=a", "1"));
  EXPECT_EQ(seen.size(), 1u);
}

TEST(ReplaySet, TakesAgainWhatWasWithdrawn) {
  ReplaySet seen(kWindow, 100);
  seen.Insert("/CN=a", "1", TestNow(), TestNow());
  seen.Withdraw("/CN=a", "1");
  seen.Withdraw("/CN=a", "none");

  const Time later = TestNow() + seconds(100);
  EXPECT_FALSE(seen.Insert("/CN=a", "1", later, later).has_value());
  // The withdrawn entry's end does not take the new one along.
  seen.Insert("/CN=b", "2", TestNow() + seconds(301), TestNow() + seconds(301));
  EXPECT_TRUE(seen.Contains("/CN=a", "1"));
}

TEST(ReplaySet, ForgetsNothingEarlyWhenItIsFull) {
  ReplaySet seen(kWindow, 2);
  seen.Insert("/CN=a", "1", TestNow(), TestNow());
  seen.Insert("/CN=a", "2", TestNow(), TestNow());

  EXPECT_EQ(seen.Insert("/CN=a", "3", TestNow(), TestNow())->reason, Reason::kTooManyRequests);
  EXPECT_TRUE(seen.Contains("/CN=a", "1"));
  EXPECT_FALSE(seen.Contains("/CN=a", "3"));
}

}  // namespace
}  // namespace sekisho::identity
