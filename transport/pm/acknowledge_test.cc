// SPDX-License-Identifier: Apache-2.0
// When acknowledgements and grants leave: docs/protocol/9-pm.md, "Numbers and acknowledgements".
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/endpoint_test.h"

namespace sekisho::pm {
namespace {

using sim::Cluster;

// The first loss after a calm time is noticed late, as acknowledgements had time; the next at once.
TEST(Acknowledge, ALostTailIsProbedBeforeTheTimeout) {
  Cluster cluster(2);
  Connect(cluster);
  for (int loss = 1; loss <= 2; ++loss) {
    const std::uint64_t before = cluster.delivered(1);
    int count = 0;
    cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes) {
      return from != 0 || ++count != 1;
    };
    const Nanos start = cluster.network().now();

    cluster.SendText(0, 1, 0, 8);
    ASSERT_TRUE(cluster.Run(kSecond, [&] { return cluster.delivered(1) == before + 1; }));

    const Nanos took = cluster.network().now() - start;
    EXPECT_LT(took, kMillisecond + (loss == 1 ? kUnhurried : 0));
    EXPECT_EQ(cluster[0].counters().probes, static_cast<std::uint64_t>(loss));
    cluster.Run(100 * kMillisecond);
  }
}

TEST(Acknowledge, AcknowledgementsWaitForDataWhereNothingIsLost) {
  Cluster cluster(2);
  Connect(cluster);
  std::uint64_t alone = cluster[1].counters().acks_only;
  const auto acks = [&] { return cluster[1].counters().acks_only - alone; };

  // An answer within 4 ms takes the acknowledgement along.
  for (int i = 0; i < 10; ++i) {
    cluster.SendText(0, 1, 0, 8);
    cluster.Run(2 * kMillisecond);
    cluster.SendText(1, 0, 0, 8);
    cluster.Run(2 * kMillisecond);
  }
  EXPECT_EQ(acks(), 0u);
  EXPECT_EQ(cluster[0].counters().probes + cluster[0].counters().retransmitted, 0u);

  // Without one it comes by itself; sooner if the sender waits for it, or in a job that stops.
  for (const bool asks : {false, true}) {
    cluster.SendText(0, 1, 0, 8);
    cluster.Run(kMillisecond);
    EXPECT_FALSE(cluster[0].Drained(1));
    if (asks) cluster[0].Hurry(1, cluster.now()), cluster.Pump(0);
    cluster.Run(asks ? 3 * kOneWay : kUnhurried + kOneWay);
    EXPECT_TRUE(cluster[0].Drained(1)) << asks;
  }
  cluster.Run(10 * kMillisecond);
  cluster.SendText(0, 1, 0, 8);
  cluster.Run(2 * kOneWay);
  ASSERT_FALSE(cluster[0].Drained(1));
  cluster[1].AskGang(true, cluster.now());
  cluster.Pump(1);
  cluster.Run(4 * kOneWay);
  EXPECT_TRUE(cluster[0].Drained(1));
}

TEST(Acknowledge, AnAcknowledgementThatIsDueSoonIsNotSleptOver) {
  Cluster cluster(2);
  Connect(cluster);
  std::vector<std::uint8_t> room(kDatagramMax);
  Address to;
  ASSERT_FALSE(cluster[0].Send(1, 0, Bytes(room).first(8), cluster.now()));
  const std::size_t size = cluster[0].NextDatagram(cluster.now(), room, to);
  cluster[1].OnDatagram(Cluster::AddressOf(0), MutableBytes(room).first(size), false,
                        cluster.now());
  ASSERT_EQ(cluster[1].NextDatagram(cluster.now(), room, to), 0u);
  const Nanos due = cluster[1].NextDeadline();

  cluster[1].SendBefore(due - 1, cluster.now());
  EXPECT_EQ(cluster[1].NextDatagram(cluster.now(), room, to), 0u);
  cluster[1].SendBefore(due, cluster.now());
  EXPECT_GT(cluster[1].NextDatagram(cluster.now(), room, to), 0u);
}

// Behind several small packets a small message waits for others; but who sleeps sends none.
TEST(Acknowledge, ASmallMessageThatWaitsForOthersIsNotSleptOver) {
  Cluster cluster(2);
  Connect(cluster);
  std::vector<std::uint8_t> room(kDatagramMax);
  Address to;
  std::size_t left = 0;
  for (int i = 0; i < 5; ++i) {
    ASSERT_FALSE(cluster[0].Send(1, 0, Bytes(room).first(8), cluster.now()));
    left += cluster[0].NextDatagram(cluster.now(), room, to) > 0 ? 1 : 0;
  }
  ASSERT_EQ(left, 4u);
  const Nanos due = cluster[0].NextDeadline();

  cluster[0].SendBefore(due - 1, cluster.now());
  EXPECT_EQ(cluster[0].NextDatagram(cluster.now(), room, to), 0u);
  cluster[0].SendBefore(due, cluster.now());
  EXPECT_GT(cluster[0].NextDatagram(cluster.now(), room, to), 0u);
}

TEST(Acknowledge, ManyMessagesAreAnsweredByFewAcknowledgements) {
  Cluster cluster(2);
  Connect(cluster);
  const std::uint64_t before = cluster[1].counters().datagrams_out;

  for (int i = 0; i < 160; ++i) cluster.SendText(0, 1, 0, 1300);
  cluster.Run(kSecond);

  EXPECT_EQ(cluster.delivered(1), 164u);
  EXPECT_LT(cluster[1].counters().datagrams_out - before, 60u);
}

// A message, and whether its acknowledgement waits for data of the other side.
void ExpectCalm(Cluster& cluster, bool calm) {
  const std::uint64_t alone = cluster[1].counters().acks_only;
  cluster.SendText(0, 1, 0, 8);
  cluster.Run(kUnhurried / 2);
  EXPECT_EQ(cluster[1].counters().acks_only == alone, calm);
  cluster.Run(kUnhurried);
  EXPECT_TRUE(cluster[0].Drained(1));
}

TEST(Acknowledge, WhatIsOnlyLateIsNoLoss) {
  Cluster cluster(2);
  Connect(cluster);
  ExpectCalm(cluster, true);

  // The first of two arrives behind the second.
  std::vector<std::uint8_t> late;
  cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes datagram) {
    if (from != 0 || !late.empty()) return true;
    late.assign(datagram.begin(), datagram.end());
    return false;
  };
  cluster.SendText(0, 1, 0, 8);
  cluster.SendText(0, 1, 0, 8);
  cluster.Run(kOneWay + kOneWay / 10);
  cluster.Deliver(0, 1, late);
  cluster.Run(10 * kMillisecond);
  EXPECT_EQ(cluster[0].counters().retransmitted, 0u);
  ExpectCalm(cluster, true);

  // Nothing arrives for so long that the sender asks: the other's processor was busy.
  std::vector<std::vector<std::uint8_t>> kept;
  cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes datagram) {
    if (from == 0) kept.emplace_back(datagram.begin(), datagram.end());
    return from != 0;
  };
  const std::uint64_t probes = cluster[0].counters().probes;
  cluster.SendText(0, 1, 0, 8);
  cluster.Run(10 * kMillisecond, [&] { return cluster[0].counters().probes > probes; });
  cluster.on_datagram = nullptr;
  for (const auto& datagram : kept) cluster.Deliver(0, 1, datagram);
  cluster.Run(100 * kMillisecond);
  EXPECT_GT(cluster[0].counters().probes, probes);
  EXPECT_GT(cluster[0].counters().spurious, 0u);
  ExpectCalm(cluster, true);

  // One that never arrives is a loss.
  bool dropped = false;
  cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes) {
    return from != 0 || std::exchange(dropped, true);
  };
  cluster.SendText(0, 1, 0, 8);
  cluster.Run(100 * kMillisecond);
  ExpectCalm(cluster, false);
}

TEST(Acknowledge, WhoLosesNothingNeedNotAskForGrants) {
  for (const bool loses : {false, true}) {
    Cluster cluster(2, [](Config& config) { config.send_ring = config.receive_ring = 1 << 20; });
    Connect(cluster);
    int left = loses ? 20 : 0;  // until one is lost, which is not a probe
    cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes) {
      return from != 0 || left == 0 || --left > 0;
    };
    for (int i = 0; i < 48; ++i) {  // more than was granted before the loss
      cluster.SendText(0, 1, 0, 8000);
      cluster.Run(100 * kMillisecond);
    }
    EXPECT_EQ(cluster[0].session(1).grant_limit - cluster[0].session(1).new_bytes > kFreeAllowance,
              !loses);
  }
}

// Its peer knows that it heard its first limit; it was saved before, and restored after that.
void AskForAForgottenLimit(bool joins) {
  Cluster cluster(2);
  bool reads = false;
  std::uint64_t read = 0;
  cluster.on_turn = [&](std::uint32_t node) {
    Message message;
    while (reads && cluster[node].Receive(message)) {
      ++read;
      (void)cluster[node].Release(message.source, message.channel, cluster.now());
    }
  };
  MakeSteady(cluster);
  for (std::uint64_t i = 0; i < kMessagesBeforeCredit - 2; ++i) cluster.SendText(0, 1, 0, 8);
  ASSERT_TRUE(cluster.Run(kSecond, [&] { return cluster[0].Drained(1); }));
  const auto saved = cluster.Save(0);
  reads = true;
  ASSERT_TRUE(cluster.Run(kSecond, [&] {
    return cluster[0].send_streams(1)[0].message_limit > kMessagesBeforeCredit;
  }));
  cluster.Run(10 * kMillisecond);
  cluster.Restore(0, saved);
  ASSERT_EQ(cluster[0].send_streams(1)[0].message_limit, kMessagesBeforeCredit);
  if (joins) cluster[0].JoinGang(true, cluster.now());

  for (int i = 0; i < 10; ++i) {
    while (cluster[0].Room(1, 0, 8, 0)) {
      if (!cluster.Run(kSecond, [&] { return !cluster[0].Room(1, 0, 8, 0); })) break;
    }
    cluster.SendText(0, 1, 0, 8);
  }
  EXPECT_TRUE(cluster.Run(kSecond, [&] { return read == kMessagesBeforeCredit + 8; })) << read;
}

TEST(Acknowledge, WhoForgotALimitAsksForIt) { AskForAForgottenLimit(false); }

// Others may join only when they have what it wants to send first.
TEST(Acknowledge, WhoForgotALimitAsksForItAlsoWhileItWaitsForAStop) { AskForAForgottenLimit(true); }

}  // namespace
}  // namespace sekisho::pm
