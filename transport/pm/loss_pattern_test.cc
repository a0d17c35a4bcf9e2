// SPDX-License-Identifier: Apache-2.0
// Losses by chance, and those of somebody who measures the rate (docs/protocol/9-pm.md,
// "Congestion").
#include "transport/pm/loss_pattern.h"

#include <functional>

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

using Verdict = LossPattern::Verdict;

class Path {
 public:
  explicit Path(std::uint64_t first = 1) : number_(first) {}

  // Packets of which those are lost that `is_lost` says, by their place.
  Verdict Send(unsigned packets, const std::function<bool(unsigned)>& is_lost, bool counts = true) {
    for (unsigned i = 0; i < packets; ++i, ++number_) {
      if (is_lost(i)) {
        pattern_.OnLost(number_);
      } else {
        pattern_.OnArrived();
      }
    }
    return pattern_.Judge(counts);
  }
  void Forget() { pattern_.Forget(); }

 private:
  std::uint64_t number_;
  LossPattern pattern_;
};

// The last six of every train of 128: 5 %.
bool EndOfTrain(unsigned i) { return i % 128 >= 122; }
// Each 20th, and now and then the next as well: 5 %.
bool NowAndThen(unsigned i) { return i % 20 == 7 || i % 200 == 8; }

TEST(LossPattern, TheEndsOfTrainsAreLostToWhoMeasuresTheRate) {
  Path path;
  EXPECT_EQ(path.Send(512, EndOfTrain), Verdict::kUnknown);
  EXPECT_EQ(path.Send(512, EndOfTrain), Verdict::kPoliced);
  EXPECT_EQ(path.Send(512, EndOfTrain), Verdict::kPoliced);
}

TEST(LossPattern, OneHereAndOneThereAreLostByChance) {
  Path path;
  EXPECT_EQ(path.Send(512, NowAndThen), Verdict::kUnknown);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(path.Send(512, NowAndThen), Verdict::kByChance);
}

// Where packets are far from each other, each second may find room.
TEST(LossPattern, AnEighthIsNotLostByChance) {
  Path path;
  const auto eighth = [](unsigned i) { return i % 8 == 3; };
  path.Send(512, eighth);
  EXPECT_EQ(path.Send(512, eighth), Verdict::kPoliced);
}

TEST(LossPattern, WhatHappensOnceSaysNothing) {
  Path path;
  const auto none = [](unsigned) { return false; };
  EXPECT_EQ(path.Send(512, EndOfTrain), Verdict::kUnknown);
  EXPECT_EQ(path.Send(512, none), Verdict::kUnknown);
  EXPECT_EQ(path.Send(512, EndOfTrain), Verdict::kUnknown);
  path.Forget();
  EXPECT_EQ(path.Send(512, EndOfTrain), Verdict::kUnknown);
}

// Trains that are lost as a whole, few of them: a link's noise that lasts for some microseconds.
TEST(LossPattern, ThreeTrainsInARowOfLossesAreChance) {
  Path path;
  const auto three = [](unsigned i) { return i < 30 && i % 10 < 6; };
  for (int i = 0; i < 4; ++i) EXPECT_NE(path.Send(512, three), Verdict::kPoliced);
}

TEST(LossPattern, RoundsThatDoNotCountAreLeftOut) {
  Path path;
  path.Send(512, EndOfTrain);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(path.Send(256, EndOfTrain, false), Verdict::kUnknown);
    EXPECT_EQ(path.Send(128, EndOfTrain), Verdict::kUnknown);
  }
  EXPECT_EQ(path.Send(128, EndOfTrain), Verdict::kPoliced);
}

// Where few are lost, it takes more packets to see that it is by chance.
TEST(LossPattern, OneOfThreeHundredIsChanceInTheEnd) {
  Path path;
  const auto one = [](unsigned i) { return i % 300 == 7; };
  EXPECT_EQ(path.Send(600, one), Verdict::kUnknown);
  EXPECT_EQ(path.Send(3000, one), Verdict::kUnknown);
  EXPECT_EQ(path.Send(3000, one), Verdict::kByChance);
}

// Between an eighth and a sixteenth, one by one: others may have taken the room of those.
TEST(LossPattern, OneOfTwelveSaysNothing) {
  Path path;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(path.Send(512, [](unsigned i) { return i % 12 == 3; }), Verdict::kUnknown);
  }
}

TEST(LossPattern, WhatWasOnlyLateDoesNotCount) {
  LossPattern pattern;
  std::uint64_t number = 1;
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 512; ++i, ++number) {
      if (i % 64 >= 3) {
        pattern.OnArrived();
        continue;
      }
      pattern.OnLost(number);
      pattern.OnFound();
      pattern.OnArrived();
    }
    EXPECT_EQ(pattern.Judge(true), Verdict::kUnknown);
  }
}

// 16 bits of a number are kept, and of how many there were.
TEST(LossPattern, LargeNumbersAndLongRoundsAreJudgedAlike) {
  Path path((std::uint64_t{1} << 40) - 60);
  path.Send(200'000, EndOfTrain);
  EXPECT_EQ(path.Send(200'000, EndOfTrain), Verdict::kPoliced);
  Path other((std::uint64_t{1} << 40) - 60);
  other.Send(200'000, NowAndThen);
  EXPECT_EQ(other.Send(200'000, NowAndThen), Verdict::kByChance);
}

}  // namespace
}  // namespace sekisho::pm
