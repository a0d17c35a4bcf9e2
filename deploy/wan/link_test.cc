// SPDX-License-Identifier: Apache-2.0
#include "deploy/wan/link.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sekisho::wan {
namespace {

TEST(Link, DelaysEveryPacketAlike) {
  Link link({.delay_ns = 5000}, 1);

  for (int64_t now : {0, 1, 1, 700}) EXPECT_EQ(link.Carry(now, 1500).arrival_ns, now + 5000);
}

TEST(Link, SendsOnePacketAfterTheOtherAtItsRate) {
  Link link({.delay_ns = 1000, .ps_per_byte = PsPerByte(1000), .queue_bytes = 1 << 20}, 1);

  EXPECT_EQ(link.Carry(0, 1000).arrival_ns, 8000 + 1000);
  EXPECT_EQ(link.Carry(0, 500).arrival_ns, 12000 + 1000);
  EXPECT_EQ(link.Carry(50'000, 1000).arrival_ns, 58'000 + 1000);
}

TEST(Link, DropsWhatItsQueueDoesNotHold) {
  Link link({.ps_per_byte = PsPerByte(8), .queue_bytes = 3000}, 1);

  int carried = 0;
  for (int i = 0; i < 10; ++i) carried += link.Carry(0, 1000).fate == Link::Fate::kCarried;

  EXPECT_EQ(carried, 4);  // 3000 bytes wait when the fourth comes, none too many
  EXPECT_EQ(link.counters().overflowed, 6u);
  EXPECT_EQ(link.Carry(1'000'000, 1000).fate, Link::Fate::kCarried);
}

TEST(Link, AnIdleLinkTakesAPacketThatIsLargerThanItsQueue) {
  Link link({.ps_per_byte = PsPerByte(1), .queue_bytes = 1}, 1);

  EXPECT_EQ(link.Carry(0, 9000).fate, Link::Fate::kCarried);
}

TEST(Link, LosesWithTheProbabilityItWasTold) {
  const int count = 100'000;
  for (double loss : {0.001, 0.05, 0.5}) {
    for (uint64_t seed : {0, 1, 77}) {
      Link link({.loss = loss}, seed);
      for (int i = 0; i < count; ++i) link.Carry(i, 100);

      EXPECT_NEAR(link.counters().lost, count * loss, 4 * std::sqrt(count * loss * (1 - loss)))
          << "seed " << seed;
      EXPECT_EQ(link.counters().lost + link.counters().packets, 1u * count);
    }
  }
}

TEST(Link, TheSameSeedLosesTheSamePackets) {
  Link one({.loss = 0.3}, 5), two({.loss = 0.3}, 5), other({.loss = 0.3}, 6);

  int differences = 0;
  for (int i = 0; i < 1000; ++i) {
    const Link::Fate fate = one.Carry(i, 100).fate;
    EXPECT_EQ(fate, two.Carry(i, 100).fate);
    differences += fate != other.Carry(i, 100).fate;
  }
  EXPECT_GT(differences, 100);
}

TEST(Link, ALostPacketHasTakenUpItsTime) {
  Link link({.ps_per_byte = PsPerByte(8), .queue_bytes = 1 << 20, .loss = 1}, 1);
  link.Carry(0, 1000);

  Link busy({.ps_per_byte = PsPerByte(8), .queue_bytes = 1000}, 1);
  busy.Carry(0, 1000);
  EXPECT_EQ(busy.Carry(0, 1000).arrival_ns, 2'000'000);
  EXPECT_EQ(link.counters().lost, 1u);
}

TEST(Link, ADilatedLinkIsSlowerInAllTimes) {
  const LinkSettings slow = Dilated({.delay_ns = 2250, .ps_per_byte = PsPerByte(1000)}, 10);

  EXPECT_EQ(slow.delay_ns, 22'500);
  EXPECT_EQ(slow.ps_per_byte, PsPerByte(100));
}

TEST(Link, AQueueHoldsWhatTheRateSendsInTheWindow) {
  EXPECT_EQ(QueueBytes(100, 30'000), 375'000);
  EXPECT_EQ(QueueBytes(1, 10'000), 64 << 10);
}

}  // namespace
}  // namespace sekisho::wan
