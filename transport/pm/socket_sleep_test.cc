// SPDX-License-Identifier: Apache-2.0
#include "transport/pm/socket_sleep.h"

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

constexpr Nanos kSoon = 20 * kMicrosecond, kLate = 5 * kMillisecond;

TEST(SocketSleep, IsForWhoHearsSomethingSoon) {
  SocketSleep sleep;
  EXPECT_FALSE(sleep.May(kSecond));
  sleep.NoteDatagram(kLate);
  EXPECT_FALSE(sleep.May(kSecond));
  sleep.NoteDatagram(kSoon);
  EXPECT_TRUE(sleep.May(kSecond));
  // Then its peer computes: bell and timers count again, until it is heard of.
  sleep.NoteNothing(kSecond, false);
  EXPECT_FALSE(sleep.May(2 * kSecond));
  sleep.NoteDatagram(kSoon);
  EXPECT_TRUE(sleep.May(2 * kSecond));
}

// How often it is late in ten seconds in which one of a hundred datagrams gets lost.
TEST(SocketSleep, WhoLosesDatagramsIsSeldomLate) {
  SocketSleep sleep;
  int late = 0, early = 0;
  Nanos now = kSecond;
  for (int i = 0; now < 11 * kSecond; ++i) {
    now += kSoon;
    sleep.NoteDatagram(kSoon);
    if (i % 100 != 0) continue;
    if (sleep.May(now)) {
      ++late;
      now += SocketSleep::kLongest;
      sleep.NoteNothing(now, true);
    } else {
      ++early;
    }
  }
  EXPECT_LE(late, 20);
  EXPECT_GT(early, 4000);
  // Much later that is forgotten: once late, it tries again after the shortest time.
  now += SocketSleep::kForgets + SocketSleep::kMostPause;
  sleep.NoteNothing(now, true);
  sleep.NoteDatagram(kSoon);
  EXPECT_FALSE(sleep.May(now + SocketSleep::kLeastPause - 1));
  EXPECT_TRUE(sleep.May(now + SocketSleep::kLeastPause));
}

}  // namespace
}  // namespace sekisho::pm
