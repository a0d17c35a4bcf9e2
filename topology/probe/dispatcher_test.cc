// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/dispatcher.h"

#include <gmock/gmock.h>

namespace sekisho::topology {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

const Answer kGood{.is_ok = true, .min_us = 100};

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

  const auto first = dispatcher.Start();
  EXPECT_THAT(first, SizeIs(2));
  EXPECT_THAT(dispatcher.Start(), IsEmpty());
  dispatcher.Report(first[0].id, kGood);

  EXPECT_THAT(Connecting(dispatcher.Start()), testing::ElementsAre(4));
}

TEST(Dispatcher, LetsTheOtherHostConnectWhereOneCannot) {
  Dispatcher dispatcher(2, 0);
  dispatcher.Add({.from = 0, .to = 1});

  dispatcher.Report(dispatcher.Start()[0].id, {});
  EXPECT_THAT(dispatcher.TakeDone(), IsEmpty());
  const auto second = dispatcher.Start();
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
  dispatcher.Report(dispatcher.Start()[0].id, {});
  dispatcher.Report(dispatcher.Start()[0].id, kGood);

  dispatcher.Add({.from = 1, .to = 2});

  EXPECT_THAT(Connecting(dispatcher.Start()), testing::ElementsAre(2));
}

TEST(Dispatcher, GivesUpWhenBothDirectionsFail) {
  Dispatcher dispatcher(2, 0);
  dispatcher.Add({.from = 0, .to = 1});

  dispatcher.Report(dispatcher.Start()[0].id, {});
  dispatcher.Report(dispatcher.Start()[0].id, {});

  const auto done = dispatcher.TakeDone();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_FALSE(done[0].second.is_ok);
}

TEST(Dispatcher, FailsWhatADeadHostWasToDoAndNothingElse) {
  Dispatcher dispatcher(4, 0);
  dispatcher.Add({.from = 0, .to = 1});
  dispatcher.Add({.from = 2, .to = 3});
  const auto orders = dispatcher.Start();
  dispatcher.Add({.from = 1, .to = 2});

  dispatcher.Kill(1);
  EXPECT_THAT(dispatcher.TakeDone(), SizeIs(1));
  EXPECT_THAT(dispatcher.Start(), IsEmpty());
  EXPECT_THAT(dispatcher.TakeDone(), SizeIs(1));
  dispatcher.Report(orders[0].id, kGood);  // its last words come too late
  dispatcher.Report(orders[1].id, kGood);

  const auto done = dispatcher.TakeDone();
  ASSERT_THAT(done, SizeIs(1));
  EXPECT_TRUE(done[0].second.is_ok);
}

}  // namespace
}  // namespace sekisho::topology
