// SPDX-License-Identifier: Apache-2.0
#include "client/site/outage.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using namespace std::chrono_literals;

const Outage::Clock::time_point kStart{1h};

TEST(Outage, PatienceCountsFromTheLossNotFromTheLastNews) {
  Outage outage(300s);
  outage.Begin(kStart);
  outage.End();  // news; then nothing for an hour

  EXPECT_TRUE(outage.Begin(kStart + 1h));
  EXPECT_GT(outage.NextPause(kStart + 1h), 0ms);
}

TEST(Outage, ALossInItDoesNotProlongIt) {
  Outage outage(10s);

  EXPECT_TRUE(outage.Begin(kStart));
  EXPECT_FALSE(outage.Begin(kStart + 9s));
  EXPECT_GT(outage.NextPause(kStart + 9s), 0ms);
  EXPECT_EQ(outage.NextPause(kStart + 10s), 0ms);
  EXPECT_EQ(outage.NextPause(kStart + 1h), 0ms);
}

TEST(Outage, PausesGrowToALimitAndNeverPassTheEnd) {
  Outage outage(60s);
  outage.Begin(kStart);
  auto most = 200ms;
  auto now = kStart;
  int tries = 0;
  for (auto pause = outage.NextPause(now); pause > 0ms; pause = outage.NextPause(now)) {
    EXPECT_LE(pause, most);
    EXPECT_TRUE(pause >= most / 2 || now + pause == kStart + 60s);
    now += pause;
    most = std::min(most * 2, 5'000ms);
    ++tries;
  }

  EXPECT_EQ(now, kStart + 60s);
  EXPECT_LT(tries, 40);
}

}  // namespace
}  // namespace sekisho::client
