// SPDX-License-Identifier: Apache-2.0
#include "common/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace sekisho {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

TEST(Retention, IsThirtyDaysUnlessTold) {
  EXPECT_EQ(MakeRetention(0)->keep, hours(24 * 30));
  EXPECT_EQ(MakeRetention(0)->every, hours(1));
}

TEST(Retention, TakesAPartOfADayAndLooksOftenEnough) {
  EXPECT_EQ(MakeRetention(0.25)->keep, hours(6));
  EXPECT_EQ(MakeRetention(0.25)->every, minutes(36));
}

TEST(Retention, LooksAtMostOnceASecond) { EXPECT_EQ(MakeRetention(1e-6)->every, seconds(1)); }

TEST(Retention, RefusesWhatIsNoTime) {
  for (const double days : {-1.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(MakeRetention(days).status().message(), HasSubstr("keepEndedDays: expected up to 36500 days")) << days;
  }
}

}  // namespace
}  // namespace sekisho
