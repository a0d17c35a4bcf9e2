// SPDX-License-Identifier: Apache-2.0
// Who a peer is: strangers, replays, those that were started anew, that are silent, or have left.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/endpoint_test.h"

namespace sekisho::pm {
namespace {

using sim::Cluster;

Kind KindOf(Bytes datagram) { return static_cast<Kind>(datagram[0] & 15); }

TEST(Greeting, StrangersGetNothingAndChangeNothing) {
  Cluster cluster(2);
  sim::Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::uint8_t> datagram(static_cast<std::size_t>(random.In(0, 200)));
    for (std::uint8_t& byte : datagram) byte = static_cast<std::uint8_t>(random.Next());
    if (datagram.size() > 20 && random.Chance(0.9)) {  // a header that leads deeper
      WriteHeader({static_cast<Kind>(random.In(1, 8)), 0, 0, 0, 1,
                   static_cast<std::uint64_t>(random.In(1, 9)),
                   static_cast<std::uint16_t>(random.In(0, 64))},
                  std::span(datagram).first<kHeaderSize>());
    }
    cluster.Deliver(0, 1, datagram);
  }

  EXPECT_EQ(cluster[1].counters().datagrams_out, 0u);
  EXPECT_EQ(cluster[1].counters().sessions, 0u);
  EXPECT_GT(cluster[1].counters().bad_tag, 1000u);
}

TEST(Greeting, ARecordedHelloIsAnsweredByNoMoreThanItsLength) {
  Cluster cluster(2);
  std::vector<std::uint8_t> hello;
  std::size_t largest_answer = 0;
  cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes datagram) {
    if (from == 0) hello.assign(datagram.begin(), datagram.end());
    if (from == 1) largest_answer = std::max(largest_answer, datagram.size());
    return false;
  };
  cluster.SendText(0, 1, 0, 100);

  const std::uint64_t before = cluster[1].counters().datagrams_out;
  for (int i = 0; i < 100; ++i) cluster.Deliver(0, 1, hello);

  EXPECT_EQ(largest_answer, hello.size());
  EXPECT_EQ(cluster[1].counters().datagrams_out - before, 100u);
  EXPECT_EQ(cluster[1].counters().sessions, 0u);
}

// Whoever asks with padding learns what the way there carries; nothing else may be padded.
TEST(Greeting, OnlyAHelloMayBePadded) {
  for (const Kind kind : {Kind::kHello, Kind::kAnswer}) {
    Cluster cluster(2);
    const SipKey key = GreetingKey(cluster[0].config().key, {0, 0, 1, 0, 0});
    std::vector<std::uint8_t> padded(1400, 0);
    Greeting greeting;
    greeting.incarnation = 1;
    greeting.nonce = 1;
    greeting.channels = static_cast<std::uint8_t>(cluster[0].config().channels - 1);
    WriteHeader({kind, 0, 0, 0, 1, 0, kGreetingControlSize},
                std::span(padded).first<kHeaderSize>());
    WriteGreeting(kind, greeting, std::span(padded).subspan<kHeaderSize, kGreetingControlSize>());
    ASSERT_EQ(Seal(key, nullptr, nullptr, padded, padded.size() - kTagSize), padded.size());
    std::vector<std::size_t> answers;
    cluster.on_datagram = [&](std::uint32_t, std::uint32_t, Bytes datagram) {
      answers.push_back(datagram.size());
      return true;
    };

    cluster.Deliver(0, 1, padded);

    if (kind == Kind::kHello) {
      ASSERT_EQ(answers.size(), 1u);
      EXPECT_EQ(answers[0], kHeaderSize + kGreetingControlSize + kTagSize);
    } else {
      EXPECT_TRUE(answers.empty());
      EXPECT_EQ(cluster[1].counters().bad_frames, 1u);
    }
    EXPECT_EQ(cluster[1].counters().sessions, 0u);
  }
}

TEST(Greeting, GenuineDatagramsReplayedAreDropped) {
  Cluster cluster(2);
  std::vector<std::vector<std::uint8_t>> recorded;
  cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes datagram) {
    if (from == 0 && KindOf(datagram) == Kind::kData) {
      recorded.emplace_back(datagram.begin(), datagram.end());
    }
    return true;
  };
  Connect(cluster);
  for (int i = 0; i < 3000; ++i) cluster.SendText(0, 1, 0, 1300), cluster.Run(kMillisecond);
  const std::uint64_t delivered = cluster.delivered(1);
  cluster.on_datagram = nullptr;

  for (const auto& datagram : recorded) cluster.Deliver(0, 1, datagram);

  EXPECT_EQ(cluster.delivered(1), delivered);
  EXPECT_EQ(cluster[1].counters().replayed + cluster[1].counters().too_old, recorded.size());
  EXPECT_GT(cluster[1].counters().too_old, 0u);
}

TEST(Greeting, ARestartedPeerIsFoundAndOldMessagesAreNotGivenToIt) {
  Cluster cluster(2);
  Connect(cluster);
  const std::uint32_t session = cluster[0].peer_session(1);

  cluster.Restart(1);
  cluster.SendText(0, 1, 0, 50);  // for the incarnation that died
  ASSERT_TRUE(cluster.Run(5 * kSecond, [&] { return cluster[0].peer_session(1) != session; }));
  EXPECT_EQ(cluster[0].peer_reason(1), Reason::kRestarted);
  const std::uint64_t before = cluster.delivered(1);
  cluster.SendText(0, 1, 0, 50);
  cluster.Run(kSecond);

  EXPECT_EQ(cluster.delivered(1), before + 1);
}

// While a program that was left behind may still store what came in the old session.
TEST(Greeting, ARestartedPeerWaitsWhileSessionsAreKept) {
  for (const bool it_speaks_first : {true, false}) {
    Cluster cluster(2);
    Connect(cluster);
    const std::uint64_t before = cluster.delivered(1);
    cluster[1].KeepSessions(true);
    cluster.Restart(0);
    const auto speak = [&] {
      cluster.SendText(it_speaks_first ? 0 : 1, it_speaks_first ? 1 : 0, 0, 8);
    };

    speak();
    cluster.Run(500 * kMillisecond);
    EXPECT_EQ(cluster[1].peer_session(0), 1u);
    EXPECT_EQ(cluster.delivered(1), before);

    cluster[1].KeepSessions(false);
    cluster.Run(kSecond);
    cluster.SendText(0, 1, 0, 8);
    cluster.Run(kSecond);
    EXPECT_EQ(cluster[1].peer_session(0), 2u);
    EXPECT_EQ(cluster.delivered(1), before + (it_speaks_first ? 2 : 1));
  }
}

TEST(Greeting, PeersThatWereStartedAnewKeepNoRecordsWhileTheOldOnesMessagesAreUnread) {
  Cluster cluster(4, [](Config& config) { config.packets = 16; });
  MakeSteady(cluster);
  bool reads = true;
  std::uint64_t received = 0;
  cluster.on_turn = [&](std::uint32_t node) {
    Message message;
    while ((node != 2 || reads) && cluster[node].Receive(message)) {
      received += node == 3 ? 1 : 0;
      ASSERT_FALSE(cluster[node].Release(message.source, message.channel, cluster.now()));
    }
  };
  for (const std::uint32_t old : {0, 1}) cluster.SendText(old, 2, 0, 8);
  cluster.SendText(2, 3, 0, 8);
  cluster.Run(20 * kMillisecond);
  reads = false;
  for (const std::uint32_t old : {0, 1}) cluster.SendText(old, 2, 0, 8);
  cluster.Run(20 * kMillisecond);
  for (const std::uint32_t old : {0, 1}) cluster.network().link(2, old).loss = 1;
  for (int i = 0; i < 20; ++i) {
    for (const std::uint32_t old : {0, 1}) cluster.SendText(2, old, 0, 1100);
  }
  cluster.Run(kMillisecond);

  for (const std::uint32_t old : {0, 1}) {
    cluster.Restart(old);
    cluster.network().link(2, old).loss = 0;
  }
  for (const std::uint32_t old : {0, 1}) cluster.SendText(old, 2, 0, 8);
  cluster.Run(500 * kMillisecond);
  ASSERT_GT(cluster[2].counters().greeting_deferred, 0u);
  received = 0;
  cluster.SendText(2, 3, 0, 8);

  EXPECT_TRUE(cluster.Run(20 * kMillisecond, [&] { return received == 1; }));
}

TEST(Greeting, SilentPeersDoNotKeepTheRecordsThatOthersNeed) {
  Cluster cluster(4, [](Config& config) { config.packets = 16; });
  MakeSteady(cluster);
  for (const std::uint32_t to : {1, 2, 3}) cluster.SendText(0, to, 0, 8);
  ASSERT_TRUE(cluster.Run(kSecond, [&] {
    return cluster.delivered(1) + cluster.delivered(2) + cluster.delivered(3) == 3;
  }));
  cluster.on_datagram = [](std::uint32_t, std::uint32_t to, Bytes) { return to < 2; };
  for (const std::uint32_t to : {2, 3}) cluster.SendText(0, to, 0, 16'000);
  cluster.Run(100 * kMillisecond);

  cluster.SendText(0, 1, 0, 8);
  EXPECT_TRUE(cluster.Run(10 * kMillisecond, [&] { return cluster.delivered(1) == 2; }));
  EXPECT_EQ(cluster[0].Check(), nullptr);

  cluster.on_datagram = nullptr;
  EXPECT_TRUE(cluster.Run(5 * kSecond,
                          [&] { return cluster.delivered(2) == 2 && cluster.delivered(3) == 2; }));
}

TEST(Greeting, AnOlderIncarnationIsRefused) {
  Cluster cluster(2);
  std::vector<std::uint8_t> old_hello;
  cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes datagram) {
    if (from == 1 && KindOf(datagram) == Kind::kHello && old_hello.empty()) {
      old_hello.assign(datagram.begin(), datagram.end());
    }
    return true;
  };
  cluster.SendText(1, 0, 0, 8);
  cluster.Run(kSecond);
  cluster.Restart(1);
  cluster.SendText(1, 0, 0, 8);
  cluster.Run(kSecond);
  ASSERT_EQ(cluster[0].peer_session(1), 2u);

  const std::uint64_t out = cluster[0].counters().datagrams_out;
  cluster.Deliver(1, 0, old_hello);

  EXPECT_EQ(cluster[0].counters().datagrams_out, out);
  EXPECT_EQ(cluster[0].counters().stale_greeting, 1u);
}

TEST(Greeting, ASilentPeerIsSuspectedAndThenGone) {
  Cluster cluster(2);
  Connect(cluster);
  for (sim::Link& link : cluster.network().links()) link.loss = 1;

  cluster.SendText(0, 1, 0, 8);
  ASSERT_TRUE(
      cluster.Run(kSecond, [&] { return cluster[0].peer_state(1) == PeerState::kSuspect; }));
  ASSERT_TRUE(
      cluster.Run(60 * kSecond, [&] { return cluster[0].peer_state(1) == PeerState::kGone; }));

  EXPECT_EQ(cluster[0].peer_reason(1), Reason::kSilent);
  EXPECT_EQ(cluster[0].Send(1, 0, {}, cluster.now()), Error::kPeerGone);
  EXPECT_EQ(cluster[0].Check(), nullptr);
}

TEST(Greeting, ALongStopOfTheProcessMakesNobodyGone) {
  Cluster cluster(2);
  Connect(cluster);
  cluster.SendText(0, 1, 0, 8);

  cluster[0].OnTimer(cluster.now() + 3600 * kSecond);  // one late expiry is one time-out
  cluster.Pump(0);
  cluster.Run(5 * kSecond);

  EXPECT_EQ(cluster[0].peer_state(1), PeerState::kUp);
}

TEST(Greeting, AClosedPeerKnowsWhy) {
  Cluster cluster(2);
  Connect(cluster);

  ASSERT_FALSE(cluster[0].Close(1, cluster.now()));
  cluster.Pump(0);
  cluster.Run(kSecond);

  EXPECT_EQ(cluster[1].peer_state(0), PeerState::kGone);
  EXPECT_EQ(cluster[1].peer_reason(0), Reason::kClosed);
}

}  // namespace
}  // namespace sekisho::pm
