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

// 1 dies, and 0 does not notice.
void ExpectNoQuestion(sim::Cluster& cluster) {
  Kill(cluster, 1);
  const std::uint64_t before = cluster[0].counters().datagrams_out;
  cluster.Run(3600 * kSecond);
  EXPECT_EQ(cluster[0].counters().datagrams_out, before);
  EXPECT_EQ(cluster[0].peer(1).state, PeerState::kUp);
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
  ExpectNoQuestion(cluster);
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

std::uint64_t SentAfterALateGreeting(const std::function<void(Config&)>& adjust) {
  sim::Cluster cluster(2, adjust);
  MakeSteady(cluster);
  cluster.Run(10 * kKeepAlive);
  bool is_lost = false;  // the first message, which comes right behind the greeting
  cluster.on_datagram = [&is_lost](std::uint32_t, std::uint32_t, Bytes datagram) {
    const bool is_data = (datagram[0] & 15) == static_cast<int>(Kind::kData);
    return is_lost || !is_data || !(is_lost = true);
  };
  cluster.SendText(0, 1, 0, 8);
  EXPECT_TRUE(cluster.Run(kSecond, [&] { return cluster.delivered(1) == 1; }));
  return cluster[0].counters().datagrams_out + cluster[1].counters().datagrams_out;
}

TEST(Silence, ASessionBeginsWithoutAQuestion) {
  EXPECT_EQ(SentAfterALateGreeting(AskAfterSilence), SentAfterALateGreeting([](Config&) {}));
}

std::uint64_t SentAfterAStop(const std::function<void(Config&)>& adjust) {
  sim::Cluster cluster(4, adjust);
  MakeSteady(cluster);
  for (std::uint32_t from = 0; from < 4; ++from) {
    for (std::uint32_t to = 0; to < 4; ++to) {
      if (to != from) cluster.SendText(from, to, 0, 8);
    }
  }
  cluster.Run(kSecond);
  for (const bool stops : {true, false}) {
    cluster[0].AskGang(stops, cluster.now());
    cluster.Pump(0);
    cluster.Run(4 * kKeepAlive / 5);
    if (stops) cluster.Run(4 * kKeepAlive);
  }
  std::uint64_t sent = 0;
  for (std::uint32_t node = 0; node < 4; ++node) sent += cluster[node].counters().datagrams_out;
  return sent;
}

TEST(Silence, AJobThatGoesOnAsksNobodyForTheTimeOfItsStop) {
  EXPECT_EQ(SentAfterAStop(AskAfterSilence), SentAfterAStop([](Config&) {}));
}

// Whose old messages are not read yet: until then nothing leaves to it.
TEST(Silence, APeerThatWasStartedAnewIsNotAskedAgainAndAgain) {
  sim::Cluster cluster(2, AskAfterSilence);
  Connect(cluster);
  std::uint64_t turns = 0;
  cluster.on_turn = [&turns](std::uint32_t) { ++turns; };
  for (int start = 0; start < 2; ++start) {
    if (start > 0) cluster.Restart(1);
    cluster.SendText(1, 0, 0, 8);
    ASSERT_FALSE(cluster.Run(20 * kKeepAlive, [&turns] { return turns > 10'000; }));
  }
  EXPECT_TRUE(cluster[0].peer(1).is_replaced);
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
  ExpectNoQuestion(cluster);
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
