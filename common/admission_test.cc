// SPDX-License-Identifier: Apache-2.0
#include "common/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::Optional;

const Admission::Time kStart{};

Admission::Limits Small() { return {.unfinished = 3, .per_peer = 1, .per_peer_spare = 1, .handshake = milliseconds(100)}; }

TEST(Admission, EvictsTheOldestUnfinishedWhenFullAndAdmitsTheNewcomer) {
  Admission table(Small());
  const auto first = table.Arrive("a", kStart);
  table.Arrive("b", kStart);
  table.Arrive("c", kStart);

  const auto fourth = table.Arrive("d", kStart);

  EXPECT_EQ(fourth.evicted, first.admitted);
  EXPECT_EQ(table.unfinished(), 3u);
}

TEST(Admission, NeverEvictsAFinishedConnection) {
  Admission table(Small());
  const auto first = table.Arrive("a", kStart);
  const auto second = table.Arrive("b", kStart);
  table.Arrive("c", kStart);
  table.Arrive("d", kStart);
  table.Finish(second.admitted);
  table.Arrive("e", kStart);

  EXPECT_FALSE(first.evicted);
  for (int i = 0; i < 10; ++i) {
    EXPECT_NE(table.Arrive(std::to_string(i), kStart).evicted, second.admitted);
  }
  EXPECT_EQ(table.open(), 4u);
}

TEST(Admission, MakesAPeerAtItsLimitLoseItsOwnOldestUnfinishedConnection) {
  Admission table(Small());
  table.Arrive("a", kStart);
  const auto second = table.Arrive("b", kStart);
  const auto third = table.Arrive("b", kStart);
  table.Finish(second.admitted);

  const auto fourth = table.Arrive("b", kStart);

  EXPECT_EQ(fourth.evicted, third.admitted);
}

TEST(Admission, LetsAPeerWhoseConnectionsAreAllInUseComeButNotFinish) {
  Admission table(Small());
  const auto first = table.Arrive("b", kStart);
  ASSERT_TRUE(table.Finish(first.admitted));

  const auto second = table.Arrive("b", kStart);

  EXPECT_FALSE(second.evicted);
  EXPECT_FALSE(table.Finish(second.admitted));
  EXPECT_TRUE(table.IsUnfinished(second.admitted));
  EXPECT_TRUE(table.Finish(table.Arrive("a", kStart).admitted));  // another is not held up
  table.Leave(first.admitted);
  EXPECT_TRUE(table.Finish(second.admitted));
}

TEST(Admission, ExpiresOnlyUnfinishedConnectionsWhoseTimeIsUp) {
  Admission table(Small());
  const auto first = table.Arrive("a", kStart);
  const auto second = table.Arrive("b", kStart);
  const auto third = table.Arrive("c", kStart + milliseconds(50));
  table.Finish(second.admitted);

  EXPECT_THAT(table.NextDeadline(), Optional(kStart + milliseconds(100)));
  EXPECT_THAT(table.Expire(kStart + milliseconds(99)), ElementsAre());
  EXPECT_THAT(table.Expire(kStart + milliseconds(100)), ElementsAre(first.admitted));
  EXPECT_THAT(table.NextDeadline(), Optional(kStart + milliseconds(150)));
  EXPECT_THAT(table.Expire(kStart + milliseconds(150)), ElementsAre(third.admitted));
  EXPECT_FALSE(table.NextDeadline());
}

TEST(Admission, ForgetsConnectionsThatLeave) {
  Admission table(Small());
  for (int i = 0; i < 100; ++i) {
    const auto arrival = table.Arrive("a", kStart);
    EXPECT_FALSE(arrival.evicted);
    table.Finish(arrival.admitted);
    table.Leave(arrival.admitted);
  }

  EXPECT_EQ(table.open(), 0u);
  EXPECT_EQ(table.unfinished(), 0u);
}

TEST(Admission, BoundsWhatAFloodFromManyPeersHolds) {
  Admission table({.unfinished = 64, .per_peer = 16, .per_peer_spare = 1, .handshake = milliseconds(100)});
  size_t evicted = 0;

  for (int i = 0; i < 20'000; ++i) {
    evicted += table.Arrive(std::to_string(i % 97), kStart).evicted.has_value();
  }

  EXPECT_EQ(table.open(), 64u);
  EXPECT_EQ(evicted, 20'000u - 64u);
}

}  // namespace
}  // namespace sekisho
