// SPDX-License-Identifier: Apache-2.0
#include "rankmap/flow_time.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rankmap/generate.h"
#include "rankmap/network_format.h"

namespace sekisho::rankmap {
namespace {

constexpr int64_t kSecond = 5'000'000'000;  // bytes that a link carries

double AtOnce(std::vector<Message> messages, const FlowOptions& options = {.together = 0}) {
  const Network ring = *ParseNetworkSpec("torus:8");
  return TimeAtOnce(*Pattern::Create(8, std::move(messages)), ring, Placement(8), options);
}

TEST(FlowTime, OneMessageTakesItsBytesAndItsHops) {
  EXPECT_NEAR(AtOnce({{0, 3, kSecond}}), 1 + 3 * 120e-9, 1e-12);
}

TEST(FlowTime, MessagesOfOneLinkShareIt) {
  EXPECT_NEAR(AtOnce({{0, 1, kSecond}, {0, 2, kSecond}}), 2 + 2 * 120e-9, 1e-12);
  EXPECT_NEAR(AtOnce({{0, 1, kSecond}, {1, 0, kSecond}}), 1 + 120e-9, 1e-12);  // other direction
}

TEST(FlowTime, WhatAnotherLinkHoldsBackIsLeftToTheOthers) {
  // Three on link 1, two of them of one hop: the long one gets a third, who shares link 0 with it two thirds.
  const std::vector<Message> messages = {
      {0, 2, kSecond / 3}, {1, 2, kSecond / 3}, {1, 3, kSecond / 3}, {0, 1, 2 * kSecond / 3}};

  EXPECT_NEAR(AtOnce(messages), 1, 1e-6);
}

TEST(FlowTime, RanksOfOneNodeTakeNoTime) { EXPECT_EQ(AtOnce({{3, 3, kSecond}}), 0); }

TEST(FlowTime, StepsFollowOneAnother) {
  const Pattern pattern = *Pattern::Create(8, {{0, 1, kSecond, 0}, {0, 1, kSecond, 1}, {4, 5, kSecond, 1}});

  EXPECT_NEAR(TimeByStep(pattern, *ParseNetworkSpec("torus:8"), Placement(8), {}), 2 + 2 * 120e-9, 1e-9);
}

TEST(FlowTime, TheLinkThatLimitsHoldsTheBytes) {
  std::vector<double> first;
  FlowOptions options;
  options.observe = [&](double now, std::span<const double> waiting) {
    if (now == 0) {
      first.assign(waiting.begin(), waiting.end());
    }
  };

  AtOnce({{0, 1, 10}, {0, 2, 30}, {4, 5, 7}}, options);

  EXPECT_EQ(first[0], 40);  // from 0, plus
  EXPECT_EQ(std::accumulate(first.begin(), first.end(), 0.0), 40);
}

TEST(FlowTime, EndingTogetherCostsLittle) {
  const Pattern pattern = *Generate("random", {.ranks = 64, .degree = 4, .seed = 3});
  const Network torus = *ParseNetworkSpec("torus:4x4x4");

  const double exact = TimeAtOnce(pattern, torus, Placement(64), {.together = 0});
  const double merged = TimeAtOnce(pattern, torus, Placement(64), {.together = 0.01});

  EXPECT_GE(merged, exact * (1 - 1e-9));
  EXPECT_LE(merged, exact * 1.01);
  EXPECT_GE(exact, static_cast<double>(Evaluate(pattern, torus, Placement(64)).max_link) / torus.bandwidth);
}

}  // namespace
}  // namespace sekisho::rankmap
