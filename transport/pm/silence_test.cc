// SPDX-License-Identifier: Apache-2.0
// Who notices that a peer died while nothing is in flight to it.
#include <gtest/gtest.h>

#include "transport/pm/endpoint_test.h"

namespace sekisho::pm {
namespace {

constexpr Nanos kKeepAlive = 5 * kSecond;
constexpr Nanos kUntilGone = 20 * kSecond;  // twelve time-outs, the last ones of a second

void AskAfterSilence(Config& config) { config.keep_alive_ms = kKeepAlive / kMillisecond; }

bool IsGone(const sim::Cluster& cluster) { return cluster[0].peer(1).state == PeerState::kGone; }

void Kill(sim::Cluster& cluster, std::uint32_t node) {
  cluster.on_datagram = [node](std::uint32_t from, std::uint32_t, Bytes) { return from != node; };
}

TEST(Silence, WhoOnlyListensIsToldOfADeathIfHeAskedForIt) {
  sim::Cluster cluster(2, AskAfterSilence);
  Connect(cluster);
  Kill(cluster, 1);
  const std::uint64_t before = cluster[0].counters().datagrams_out;
  cluster.Run(kKeepAlive - 100 * kMillisecond);
  EXPECT_EQ(cluster[0].counters().datagrams_out, before);
  EXPECT_TRUE(cluster.Run(kUntilGone, [&] { return IsGone(cluster); }));
  EXPECT_EQ(cluster[0].peer(1).reason, Reason::kSilent);
}

TEST(Silence, WhoDidNotAskSendsNothing) {
  sim::Cluster cluster(2);
  Connect(cluster);
  Kill(cluster, 1);
  const std::uint64_t before = cluster[0].counters().datagrams_out;
  cluster.Run(3600 * kSecond);
  EXPECT_EQ(cluster[0].counters().datagrams_out, before);
  EXPECT_EQ(cluster[0].peer(1).state, PeerState::kUp);
}

TEST(Silence, ALivingPeerIsAskedOnceInThatTimeAndStays) {
  constexpr std::uint64_t kTimes = 200;
  sim::Cluster cluster(2, [](Config& config) {
    if (config.node == 0) AskAfterSilence(config);
  });
  Connect(cluster);
  const std::uint64_t before = cluster[0].counters().datagrams_out;
  cluster.Run(kTimes * kKeepAlive);
  const std::uint64_t sent = cluster[0].counters().datagrams_out - before;
  EXPECT_GE(sent, kTimes - 2);
  EXPECT_LE(sent, 2 * kTimes);  // it is told limits, and acknowledges them
  EXPECT_EQ(cluster[0].peer(1).state, PeerState::kUp);
}

std::uint64_t SentWhileThePeerTalks(const std::function<void(Config&)>& adjust) {
  sim::Cluster cluster(2, adjust);
  Connect(cluster);
  for (int i = 0; i < 100; ++i) {
    cluster.SendText(1, 0, 0, 8);
    cluster.Run(kSecond);
  }
  return cluster[0].counters().datagrams_out;
}

TEST(Silence, WhoIsHeardIsNotAsked) {
  EXPECT_EQ(SentWhileThePeerTalks(AskAfterSilence), SentWhileThePeerTalks([](Config&) {}));
}

TEST(Silence, WhoAwaitsAnAnswerNoticesADeath) {
  sim::Cluster cluster(2);
  Connect(cluster);
  cluster[0].Await(1, true, cluster.now());
  cluster.Pump(0);
  cluster.Run(60 * kSecond);
  EXPECT_EQ(cluster[0].peer(1).state, PeerState::kUp) << "it lives, and only takes its time";
  Kill(cluster, 1);
  EXPECT_TRUE(cluster.Run(kUntilGone, [&] { return IsGone(cluster); }));
  EXPECT_EQ(cluster[0].peer(1).reason, Reason::kSilent);
}

TEST(Silence, WhoHasHisAnswerAsksNoMore) {
  sim::Cluster cluster(2);
  Connect(cluster);
  cluster[0].Await(1, true, cluster.now());
  cluster.Pump(0);
  cluster.Run(60 * kSecond);
  cluster[0].Await(1, false, cluster.now());
  cluster.Run(kSecond);  // what was asked last
  Kill(cluster, 1);
  const std::uint64_t before = cluster[0].counters().datagrams_out;
  cluster.Run(3600 * kSecond);
  EXPECT_EQ(cluster[0].counters().datagrams_out, before);
  EXPECT_EQ(cluster[0].peer(1).state, PeerState::kUp);
}

TEST(Silence, AnAnswerIsAwaitedOfWhoIsNotKnownYet) {
  sim::Cluster cluster(2);
  MakeSteady(cluster);
  cluster[0].Await(1, true, cluster.now());
  cluster.Pump(0);
  cluster.SendText(0, 1, 0, 8);
  ASSERT_TRUE(cluster.Run(kSecond, [&] { return cluster.delivered(1) == 1; }));
  cluster.Run(kSecond);
  Kill(cluster, 1);
  EXPECT_TRUE(cluster.Run(kUntilGone, [&] { return IsGone(cluster); }));
}

TEST(Silence, WhoWasSavedMeanwhileStillAwaits) {
  sim::Cluster cluster(2);
  Connect(cluster);
  cluster[0].Await(1, true, cluster.now());
  cluster.Restore(0, cluster.Save(0));
  cluster.Pump(0);
  cluster.Run(kSecond);
  Kill(cluster, 1);
  EXPECT_TRUE(cluster.Run(kUntilGone, [&] { return IsGone(cluster); }));
}

}  // namespace
}  // namespace sekisho::pm
