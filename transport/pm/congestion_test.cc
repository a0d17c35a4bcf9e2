// SPDX-License-Identifier: Apache-2.0
// What a path may carry, as far as docs/protocol/9-pm.md, "Congestion", says more than the flows in
// sim/flow_test.cc show.
#include "transport/pm/congestion.h"

#include <vector>

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

constexpr std::uint32_t kPacket = 1472;
constexpr std::uint32_t kMessage = 32 * 1024;

// A sender of a message every 5 ms. The first packet is acknowledged after `fastest`, the others
// after 2 ms: as fast as the path is, the receiver has to share its processor.
class NowAndThen {
 public:
  NowAndThen() { path_.Init(0, kPacket, now_); }

  void Send(Nanos fastest, std::uint32_t lost = 0, bool by_gap = true) {
    std::vector<RateSample> samples;
    std::uint64_t in_flight = 0;
    const Nanos sent = now_ += 5 * kMillisecond;
    for (; in_flight < kMessage; in_flight += kPacket) {
      samples.push_back(path_.OnSent(kPacket, in_flight, sent));
    }
    if (lost > 0) path_.OnLost(1, lost, by_gap, lost_at_ = sent);
    const auto acknowledge = [&](std::size_t first, std::size_t end, Nanos after) {
      now_ = sent + after;
      Congestion::Newest newest;
      for (std::size_t i = first; i < end; ++i) {
        path_.OnAcked(samples[i], sent, kPacket, now_, newest);
        in_flight -= kPacket;
      }
      rtt_.Sample(after, 0, now_);
      path_.OnAckEnd(newest, rtt_, in_flight, 0, now_);
    };
    acknowledge(0, 1, fastest);
    acknowledge(1, samples.size(), 2 * kMillisecond);
  }
  // The first packet of a message, after a pause.
  void BeginAfter(Nanos pause) { path_.OnSent(kPacket, 0, now_ += pause); }
  void TakeBack(std::uint32_t lost, Nanos declared) { path_.OnSpurious(lost, declared); }
  Nanos lost_at() const { return lost_at_; }  // the last ones
  std::uint64_t window() const { return path_.window(); }
  // Whether 4 MiB may not leave at once, if the window allowed it.
  bool is_paced() const {
    Nanos next = now_;
    for (std::uint32_t sent = 0; sent < 4 << 20; sent += kPacket) {
      next = path_.NextSend(next, kPacket, now_);
    }
    return next > now_;
  }

 private:
  Nanos now_ = kSecond;
  Nanos lost_at_ = 0;
  Congestion path_;
  Rtt rtt_;
};

TEST(Congestion, WhatWasInFlightWithoutHarmMayBeAgain) {
  NowAndThen sender;
  for (int i = 0; i < 20; ++i) sender.Send(50 * kMicrosecond);

  EXPECT_GE(sender.window(), 2 * kMessage);  // at the rate that is seen it would be less than one
}

TEST(Congestion, WhereAQueueStandsLessMayBe) {
  NowAndThen sender;
  for (int i = 0; i < 20; ++i) sender.Send(50 * kMicrosecond);
  for (int i = 0; i < 4; ++i) sender.Send(500 * kMicrosecond);
  const std::uint64_t with_queue = sender.window();
  sender.Send(500 * kMicrosecond, kPacket);
  sender.Send(500 * kMicrosecond);

  EXPECT_LT(with_queue, 2 * kMessage);
  EXPECT_LT(sender.window(), with_queue);
}

// After `losses` in a queue: how much more may be in flight after four rounds with a queue.
std::uint64_t GrowthAfter(int losses, Nanos late = 500 * kMicrosecond) {
  NowAndThen sender;
  for (int i = 0; i < 20; ++i) sender.Send(50 * kMicrosecond);
  for (int i = 0; i < losses; ++i) sender.Send(late, kPacket);
  sender.Send(late);
  const std::uint64_t before = sender.window();
  for (int i = 0; i < 4; ++i) sender.Send(late);
  return sender.window() - before;
}

// TCP with a few packets in flight waits for its timer after most losses: who does not, and grows
// as fast, takes most of the path.
TEST(Congestion, WhoHasFewPacketsInFlightGrowsSlower) {
  EXPECT_GE(GrowthAfter(1), 2 * kPacket);
  EXPECT_GT(GrowthAfter(20), 0u);
  EXPECT_LT(GrowthAfter(20), kPacket);
}

// There the timer is little beside a round trip.
TEST(Congestion, OnALongWayFewPacketsAreNoReason) {
  EXPECT_GE(GrowthAfter(20, 60 * kMillisecond), 3 * kPacket / 2);
}

// The rate of such a path is what its hosts get of their processors.
TEST(Congestion, OnlyOnALongWayOrAfterALossMustPacketsWait) {
  NowAndThen near, far;
  for (int i = 0; i < 20; ++i) near.Send(50 * kMicrosecond), far.Send(1500 * kMicrosecond);
  EXPECT_FALSE(near.is_paced());
  EXPECT_TRUE(far.is_paced());

  near.Send(50 * kMicrosecond, kPacket);
  near.Send(50 * kMicrosecond);
  EXPECT_TRUE(near.is_paced());
  for (int i = 0; i < 120; ++i) near.Send(50 * kMicrosecond);
  EXPECT_FALSE(near.is_paced());
}

TEST(Congestion, ALossThatWasNoneIsForgotten) {
  NowAndThen sender;
  for (int i = 0; i < 20; ++i) sender.Send(50 * kMicrosecond);
  for (int i = 0; i < 4; ++i) sender.Send(500 * kMicrosecond);
  sender.Send(500 * kMicrosecond, 2 * kPacket);
  sender.TakeBack(kPacket, sender.lost_at());
  sender.Send(500 * kMicrosecond);
  EXPECT_TRUE(sender.is_paced());  // the other one was
  sender.TakeBack(kPacket, sender.lost_at());
  sender.Send(500 * kMicrosecond);
  EXPECT_FALSE(sender.is_paced());
}

TEST(Congestion, ALossThatWasNoneSaysNothingOfLaterOnes) {
  NowAndThen sender;
  for (int i = 0; i < 20; ++i) sender.Send(50 * kMicrosecond);
  sender.Send(50 * kMicrosecond, 4 * kPacket, false);
  const Nanos late = sender.lost_at();
  for (int i = 0; i < 4; ++i) sender.Send(500 * kMicrosecond);
  EXPECT_FALSE(sender.is_paced());  // after a time-out it is more often late
  sender.Send(500 * kMicrosecond, 2 * kPacket);
  sender.TakeBack(4 * kPacket, late);
  sender.Send(500 * kMicrosecond);

  EXPECT_TRUE(sender.is_paced());
}

// What fills a shallow queue again and again is paced for longer each time.
TEST(Congestion, WhoLosesAgainIsPacedForLonger) {
  NowAndThen sender;
  std::vector<int> times;
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 20; ++i) sender.Send(50 * kMicrosecond);
    sender.Send(50 * kMicrosecond, kPacket);
    int paced = 0;
    for (sender.Send(50 * kMicrosecond); sender.is_paced(); ++paced) {
      sender.Send(50 * kMicrosecond);
      ASSERT_LT(paced, 10'000);
    }
    times.push_back(paced);
  }
  EXPECT_GT(times[1], times[0] * 3 / 2);
  EXPECT_GT(times[2], times[1] * 3 / 2);
}

TEST(Congestion, WhatWasProvenLongAgoProvesNothing) {
  for (const Nanos pause : {kSecond, 20 * kSecond}) {
    NowAndThen sender;
    for (int i = 0; i < 20; ++i) sender.Send(50 * kMicrosecond);
    sender.BeginAfter(pause);

    EXPECT_EQ(sender.window() >= 2 * kMessage, pause == kSecond);
  }
}

// The application had nothing more; then a packet is lost that was longer than what is under way.
TEST(Congestion, WhatIsLostDoesNotKeepTheProgramLimited) {
  Nanos now = kSecond;
  Congestion path;
  Rtt rtt;
  path.Init(0, kPacket, now);
  path.OnAppLimited(0);
  path.OnSent(kPacket, 0, now);
  path.OnLost(1, kPacket, false, now += 3 * kMillisecond);
  RateSample last;
  for (int i = 0; i < 20; ++i) {
    last = path.OnSent(kPacket, 0, now);
    Congestion::Newest newest;
    path.OnAcked(last, now, kPacket, now + kMillisecond, newest);
    now += kMillisecond;
    rtt.Sample(kMillisecond, 0, now);
    path.OnAckEnd(newest, rtt, 0, 0, now);
  }

  EXPECT_FALSE(last.app_limited);
}

}  // namespace
}  // namespace sekisho::pm
