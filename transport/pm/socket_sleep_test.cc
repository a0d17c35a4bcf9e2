// SPDX-License-Identifier: Apache-2.0
#include "transport/pm/socket_sleep.h"

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

constexpr Nanos kSoon = 20 * kMicrosecond, kLate = 5 * kMillisecond, kNow = kSecond;

TEST(SocketSleep, IsForWhoHearsSomethingSoon) {
  SocketSleep sleep;
  EXPECT_FALSE(sleep.May(kNow, kNever));
  sleep.Note(true, kLate);
  EXPECT_FALSE(sleep.May(kNow, kNever));
  sleep.Note(true, kSoon);
  EXPECT_TRUE(sleep.May(kNow, kNever));
  // Then its peer computes: bell and timers count again, until it is heard of.
  sleep.Note(false, kLate);
  EXPECT_FALSE(sleep.May(kNow, kNever));
  sleep.Note(true, kSoon);
  EXPECT_TRUE(sleep.May(kNow, kNever));
}

TEST(SocketSleep, IsNotForWhoWaitsForAShortTime) {
  SocketSleep sleep;
  sleep.Note(true, kSoon);
  EXPECT_FALSE(sleep.May(kNow, kNow + SocketSleep::kLongest));
  EXPECT_FALSE(sleep.May(kNow, kNow + SocketSleep::kWithTicks - 1));
  EXPECT_TRUE(sleep.May(kNow, kNow + SocketSleep::kWithTicks));
}

TEST(SocketSleep, IsNotForWhoSharesTheContextWithOtherThreads) {
  SocketSleep sleep;
  sleep.Note(true, kSoon);
  sleep.NoteOthers(kNow);
  EXPECT_FALSE(sleep.May(kNow + SocketSleep::kAlone - 1, kNever));
  EXPECT_TRUE(sleep.May(kNow + SocketSleep::kAlone, kNever));
}

// How often it is late in ten seconds in which one of a hundred datagrams gets lost, while those of
// another peer still end each sleep.
TEST(SocketSleep, WhoLosesDatagramsIsSeldomLate) {
  SocketSleep sleep;
  int late = 0, early = 0;
  Nanos now = kNow;
  for (int i = 0; now < kNow + 10 * kSecond; ++i) {
    now += kSoon;
    sleep.Note(true, kSoon);
    if (i % 100 != 0) continue;
    if (sleep.May(now, kNever)) {
      ++late;
      sleep.NoteLate(now);
    } else {
      ++early;
    }
  }
  EXPECT_LE(late, 20);
  EXPECT_GT(early, 4000);
  // Much later that is forgotten: once late, it tries again after the shortest time.
  now += SocketSleep::kForgets + SocketSleep::kMostPause;
  sleep.NoteLate(now);
  EXPECT_FALSE(sleep.May(now + SocketSleep::kLeastPause - 1, kNever));
  EXPECT_TRUE(sleep.May(now + SocketSleep::kLeastPause, kNever));
}

}  // namespace
}  // namespace sekisho::pm
