// SPDX-License-Identifier: Apache-2.0
#include "transport/pm/wait_loop.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

constexpr Nanos kLook = 100;  // what one takes

// A program that waits for one thing after the other, in a time of its own.
class World {
 public:
  bool Wait(Nanos comes_after, Nanos patience = kSecond) {
    begin_ = now_;
    comes_ = comes_after == kNever ? kNever : begin_ + comes_after;
    until_ = begin_ + patience;
    looks = yielded = given_away = sleeps = 0;
    looked_for = kNever;
    return WaitLoop(*this, waiting, spins_, yields_, begin_, until_);
  }

  bool Holds() const { return now_ >= comes_; }
  Nanos Look(bool spins) {
    EXPECT_EQ(spins, !just_slept_);
    just_slept_ = false;
    ++looks;
    return now_ += kLook;
  }
  bool IsInVain() const { return is_in_vain; }
  bool HasDatagram() const { return looks % 2 == 0; }
  bool IsStopped() const { return is_stopped; }
  void Yield(Nanos now) {
    if (!yields_.MayYield(now)) return;
    ++yielded;
    now_ += a_yield_takes;
    yields_.Note(now, now + a_yield_takes);
  }
  void GiveAway() { ++given_away; }
  void Sleep() {
    ++sleeps;
    just_slept_ = true;
    if (looked_for == kNever) looked_for = now_ - begin_;
    now_ = std::max(now_, std::min(comes_, until_));
  }

  Waiting waiting = Waiting::kAdaptive;
  Nanos a_yield_takes = 0;
  bool is_in_vain = false, is_stopped = false;
  // Of the last wait.
  int looks = 0, yielded = 0, given_away = 0, sleeps = 0;
  Nanos looked_for = kNever;  // before its first sleep

 private:
  SpinHistory spins_;
  YieldHistory yields_;
  Nanos now_ = kSecond;
  Nanos begin_ = 0, comes_ = 0, until_ = 0;
  bool just_slept_ = false;
};

TEST(WaitLoop, WhatWasSleptForIsLookedForTheNextTime) {
  World world;
  EXPECT_TRUE(world.Wait(20 * kMicrosecond));
  EXPECT_EQ(world.sleeps, 1);
  EXPECT_EQ(world.looked_for, SpinHistory::kLeast);

  EXPECT_TRUE(world.Wait(20 * kMicrosecond));
  EXPECT_EQ(world.sleeps, 0);
  EXPECT_EQ(world.looks, 200);
}

TEST(WaitLoop, WhatComesTooLateIsSleptForSoonerAndSooner) {
  World world;
  EXPECT_TRUE(world.Wait(16 * kMicrosecond - kLook));
  for (const Nanos looks : {33, 17, 9, 5}) {
    EXPECT_TRUE(world.Wait(kMillisecond));
    EXPECT_EQ(world.looked_for, looks * kMicrosecond);
    EXPECT_EQ(world.sleeps, 1);
  }
}

TEST(WaitLoop, WhatDoesNotComeTeachesNothing) {
  World world;
  EXPECT_TRUE(world.Wait(16 * kMicrosecond - kLook));
  EXPECT_FALSE(world.Wait(kNever, 24 * kMicrosecond));
  EXPECT_EQ(world.sleeps, 0);
  EXPECT_FALSE(world.Wait(kNever, kMillisecond));
  EXPECT_EQ(world.looked_for, 33 * kMicrosecond);
  EXPECT_FALSE(world.Wait(kNever, kMillisecond));
  EXPECT_EQ(world.looked_for, 33 * kMicrosecond);
}

TEST(WaitLoop, OthersHaveTheProcessorBetweenTwoLooks) {
  World world;
  EXPECT_TRUE(world.Wait(20 * kMicrosecond));
  EXPECT_TRUE(world.Wait(10 * kLook));
  EXPECT_EQ(world.looks, 10);
  EXPECT_EQ(world.yielded, 9);
}

TEST(WaitLoop, WhoSharesAProcessorYieldsFirstAndSleepsAfterTenLooksInVain) {
  World world;
  EXPECT_TRUE(world.Wait(40 * kMicrosecond));
  world.a_yield_takes = 2 * kMicrosecond;  // another one ran
  EXPECT_TRUE(world.Wait(kMicrosecond));
  EXPECT_EQ(world.yielded, 1);

  world.is_in_vain = true;
  EXPECT_FALSE(world.Wait(kNever, kMillisecond));
  EXPECT_EQ(world.yielded, 10) << "once before it looked at all";
  EXPECT_EQ(world.looked_for, 10 * (kLook + world.a_yield_takes));

  world.is_in_vain = false;
  EXPECT_FALSE(world.Wait(kNever, kMillisecond));
  EXPECT_GT(world.looked_for, 30 * kMicrosecond) << "something came each time";
}

TEST(WaitLoop, NobodyYieldsForWhatIsThere) {
  World world;
  EXPECT_TRUE(world.Wait(40 * kMicrosecond));
  world.a_yield_takes = 2 * kMicrosecond;
  EXPECT_TRUE(world.Wait(kMicrosecond));
  EXPECT_TRUE(world.Wait(0));
  EXPECT_EQ(world.yielded, 0);
  EXPECT_EQ(world.looks, 1);
}

// Others have it for longer than what is waited for is worth.
TEST(WaitLoop, WhoHasLetOthersComputeYieldsNoMoreForAWhile) {
  World world;
  EXPECT_TRUE(world.Wait(20 * kMicrosecond));
  world.a_yield_takes = kMillisecond;
  EXPECT_TRUE(world.Wait(10 * kMicrosecond));
  EXPECT_EQ(world.yielded, 1);
  EXPECT_TRUE(world.Wait(kMicrosecond / 2));
  EXPECT_EQ(world.yielded, 0);
}

TEST(WaitLoop, InAStoppedJobAllSleepAfterALook) {
  World world;
  world.is_stopped = true;
  for (const Waiting waiting :
       {Waiting::kSpin, Waiting::kYield, Waiting::kAdaptive, Waiting::kSleep, Waiting::kClassic}) {
    world.waiting = waiting;
    EXPECT_TRUE(world.Wait(kMillisecond));
    EXPECT_EQ(world.sleeps, 1);
    EXPECT_EQ(world.looks, waiting == Waiting::kSleep ? 1 : 2);
  }
}

TEST(WaitLoop, TheOtherPoliciesDoAsTheySay) {
  World world;
  const auto wait = [&world](Waiting waiting) {
    world.waiting = waiting;
    EXPECT_TRUE(world.Wait(100 * kLook));
  };
  wait(Waiting::kSpin);
  EXPECT_EQ(world.given_away + world.sleeps, 0);
  wait(Waiting::kYield);
  EXPECT_EQ(world.given_away, 99);
  wait(Waiting::kClassic);
  EXPECT_EQ(world.given_away, 49) << "where a datagram is and no message";
  wait(Waiting::kSleep);
  EXPECT_EQ(world.sleeps, 1);
  EXPECT_EQ(world.looked_for, 0) << "at once";
  EXPECT_TRUE(world.Wait(0));
  EXPECT_EQ(world.sleeps, 0);
}

}  // namespace
}  // namespace sekisho::pm
