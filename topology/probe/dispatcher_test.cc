// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/dispatcher.h"

#include <limits>

#include <gmock/gmock.h>

namespace sekisho::topology {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

const Answer kGood{.is_ok = true, .min_us = 100};
constexpr double kNow = 0;

// The hosts that connect, in the order in which they are told to.
std::vector<int> Connecting(const std::vector<Dispatcher::Order>& orders) {
  std::vector<int> hosts;
  for (const Dispatcher::Order& order : orders) {
    hosts.push_back(order.request.from);
  }
  return hosts;
}

TEST(Dispatcher, StartsNoMoreThanMayRunAtOnce) {
  Dispatcher dispatcher(6, 2);
  for (const int host : {0, 2, 4}) {
    dispatcher.Add({.from = host, .to = host + 1});
  }

  const auto first = dispatcher.Start(kNow);
  EXPECT_THAT(first, SizeIs(2));
  EXPECT_THAT(dispatcher.Start(kNow), IsEmpty());
  dispatcher.Report(first[0].id, kGood);

  EXPECT_THAT(Connecting(dispatcher.Start(kNow)), testing::ElementsAre(4));
}

TEST(Dispatcher, DoesNotWaitForThoseThatTakeLong) {
  Dispatcher dispatcher(8, 2);
  for (const int host : {0, 2, 4, 6}) {
    dispatcher.Add({.from = host, .to = host + 1});
  }
  const auto first = dispatcher.Start(kNow);
  EXPECT_THAT(dispatcher.Start(kNow + Dispatcher::kCrowdS / 2), IsEmpty());
  EXPECT_EQ(dispatcher.NextStart(), kNow + Dispatcher::kCrowdS);

  dispatcher.Report(first[0].id, kGood);
  EXPECT_THAT(Connecting(dispatcher.Start(kNow + Dispatcher::kCrowdS / 2)), testing::ElementsAre(4));
  EXPECT_THAT(Connecting(dispatcher.Start(dispatcher.NextStart())), testing::ElementsAre(6));
  EXPECT_EQ(dispatcher.NextStart(), std::numeric_limits<double>::infinity());
}

TEST(Dispatcher, HasEightTimesAsManyUnderWayAtMost) {
  Dispatcher dispatcher(40, 1);
  for (int host = 0; host < 40; host += 2) {
    dispatcher.Add({.from = host, .to = host + 1});
  }
  size_t started = 0;
  double now_s = 0;
  for (; now_s < 1; now_s += Dispatcher::kCrowdS) {
    started += dispatcher.Start(now_s).size();
  }

  EXPECT_EQ(started, Dispatcher::kFarOnes);
  EXPECT_EQ(dispatcher.NextStart(), std::numeric_limits<double>::infinity());
  dispatcher.Report(1, kGood);
  EXPECT_THAT(dispatcher.Start(now_s), SizeIs(1));
}

TEST(Dispatcher, LetsTheOtherHostConnectWhereOneCannot) {
  Dispatcher dispatcher(2, 0);
  dispatcher.Add({.from = 0, .to = 1});

  dispatcher.Report(dispatcher.Start(kNow)[0].id, {});
  EXPECT_THAT(dispatcher.TakeDone(), IsEmpty());
  const auto second = dispatcher.Start(kNow);
  ASSERT_THAT(Connecting(second), testing::ElementsAre(1));
  dispatcher.Report(second[0].id, kGood);

  // The method hears of the pair that it asked for, and of the answer only.
  const auto done = dispatcher.TakeDone();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_EQ(done[0].first.from, 0);
  EXPECT_TRUE(done[0].second.is_ok);
  EXPECT_TRUE(dispatcher.IsIdle());
}

TEST(Dispatcher, AsksAHostBehindAFirewallFirstOnceItIsKnown) {
  Dispatcher dispatcher(3, 0);
  dispatcher.Add({.from = 0, .to = 2});
  dispatcher.Report(dispatcher.Start(kNow)[0].id, {});
  dispatcher.Report(dispatcher.Start(kNow)[0].id, kGood);

  dispatcher.Add({.from = 1, .to = 2});

  EXPECT_THAT(Connecting(dispatcher.Start(kNow)), testing::ElementsAre(2));
}

TEST(Dispatcher, GivesUpWhenBothDirectionsFail) {
  Dispatcher dispatcher(2, 0);
  dispatcher.Add({.from = 0, .to = 1});

  dispatcher.Report(dispatcher.Start(kNow)[0].id, {});
  dispatcher.Report(dispatcher.Start(kNow)[0].id, {});

  const auto done = dispatcher.TakeDone();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_FALSE(done[0].second.is_ok);
}

TEST(Dispatcher, FailsWhatADeadHostWasToDoAndNothingElse) {
  Dispatcher dispatcher(4, 0);
  dispatcher.Add({.from = 0, .to = 1});
  dispatcher.Add({.from = 2, .to = 3});
  const auto orders = dispatcher.Start(kNow);
  dispatcher.Add({.from = 1, .to = 2});

  dispatcher.Kill(1);
  EXPECT_THAT(dispatcher.TakeDone(), SizeIs(1));
  EXPECT_THAT(dispatcher.Start(kNow), IsEmpty());
  EXPECT_THAT(dispatcher.TakeDone(), SizeIs(1));
  dispatcher.Report(orders[0].id, kGood);  // its last words come too late
  dispatcher.Report(orders[1].id, kGood);

  const auto done = dispatcher.TakeDone();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_TRUE(done[0].second.is_ok);
}

}  // namespace
}  // namespace sekisho::topology
