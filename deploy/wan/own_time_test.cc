// SPDX-License-Identifier: Apache-2.0
#include "deploy/wan/own_time.h"

#include <gtest/gtest.h>

namespace sekisho::wan {
namespace {

// As if packets to host 0 had taken `took_ns` to be written, many times; returns the time then.
int64_t Write(OwnTime& own, int64_t took_ns, int times, int64_t now_ns = 0) {
  for (int i = 0; i < times; ++i, now_ns += 100'000) {
    own.Look(now_ns);
    own.Wrote(0, now_ns, now_ns, now_ns + took_ns);
  }
  return now_ns;
}

TEST(OwnTime, PacketsAreWrittenEarlierByWhatItTakes) {
  OwnTime own(2);
  EXPECT_EQ(own.lead_ns(), 0);
  const int64_t now = Write(own, 4'000, 400);
  EXPECT_NEAR(own.lead_ns(), 4'000, 100);
  Write(own, 3'000, 20, now);  // at once, as else they were too early
  EXPECT_NEAR(own.lead_ns(), 3'000, 100);
}

TEST(OwnTime, LessThanMostTake) {
  OwnTime own(2);
  int64_t now = 0;
  for (int i = 0; i < 400; ++i) now = Write(own, i % 2 == 0 ? 3'000 : 6'000, 1, now);
  EXPECT_GE(own.lead_ns(), 2'800);
  EXPECT_LE(own.lead_ns(), 3'400);
}

TEST(OwnTime, AWriteThatWasInterruptedCountsForLittle) {
  OwnTime own(2);
  const int64_t now = Write(own, 4'000, 400);
  Write(own, 5'000'000, 1, now);
  EXPECT_LE(own.lead_ns(), 4'600);
}

TEST(OwnTime, APacketCameInWhenItBeganToLook) {
  OwnTime own(2);
  int64_t now = Write(own, 4'000, 400);
  own.Look(now);
  own.Look(now + 500);
  EXPECT_EQ(own.ArrivalNs(1, false, now + 2'000), now + 500);
  EXPECT_EQ(own.ArrivalNs(1, true, now + 2'000), now + 2'000);
}

TEST(OwnTime, AnAnswerOfTheKernelCameInWhenTheQuestionWasDue) {
  OwnTime own(2);
  int64_t now = Write(own, 4'000, 400);
  own.Look(now);
  own.Wrote(1, now + 3'000, now, now + 5'000);
  own.Look(now + 5'000);
  EXPECT_EQ(own.ArrivalNs(1, false, now + 6'000), now + 3'000);
  EXPECT_EQ(own.ArrivalNs(0, false, now + 6'000), now + 5'000);
  own.Look(now + 6'000);
  EXPECT_EQ(own.ArrivalNs(1, false, now + 7'000), now + 6'000);  // a process of the host's, later
}

// Whoever waits for the shortest of some would believe it.
TEST(OwnTime, NothingCameInLongBeforeItWasSeen) {
  OwnTime own(2);
  int64_t now = Write(own, 4'000, 400);
  own.Look(now);
  const int64_t seen = now + 50'000;  // the emulator had no processor
  EXPECT_GE(own.ArrivalNs(1, false, seen), seen - 2 * own.lead_ns() - 1'000);
  EXPECT_LE(own.ArrivalNs(1, false, seen), seen);
}

}  // namespace
}  // namespace sekisho::wan
