// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/pace.h"

#include <gmock/gmock.h>

namespace sekisho::topology {
namespace {

using std::chrono::milliseconds;
constexpr uint64_t kKib = 1024;
const Pace::Time kBegin = Pace::Time() + std::chrono::hours(1);

TEST(Pace, WaitsForNobodyWhereNobodyIsNext) { EXPECT_FALSE(Pace().IsFarAhead(1 << 30, kBegin)); }

TEST(Pace, IsNotFarAheadOfASlowHost) {
  Pace pace;
  for (int i = 1; i <= 20; ++i) {
    pace.Give(i * 10 * kKib, kBegin + milliseconds(100 * i));
  }
  const auto now = kBegin + milliseconds(2000);

  EXPECT_FALSE(pace.IsFarAhead(260 * kKib, now));
  EXPECT_TRUE(pace.IsFarAhead(270 * kKib, now));
}

TEST(Pace, MayBeHalfASecondAheadOfAFastOne) {
  Pace pace;
  for (int i = 1; i <= 20; ++i) {
    pace.Give(i * 10'000 * kKib, kBegin + milliseconds(100 * i));
  }
  const auto now = kBegin + milliseconds(2000);

  EXPECT_FALSE(pace.IsFarAhead(240'000 * kKib, now));
  EXPECT_TRUE(pace.IsFarAhead(280'000 * kKib, now));
}

TEST(Pace, DoesNotWaitForOneThatTakesNothing) {
  Pace pace;
  pace.Give(10 * kKib, kBegin);

  EXPECT_TRUE(pace.IsFarAhead(500 * kKib, kBegin + milliseconds(900)));
  EXPECT_FALSE(pace.IsFarAhead(500 * kKib, kBegin + milliseconds(1100)));
}

}  // namespace
}  // namespace sekisho::topology
