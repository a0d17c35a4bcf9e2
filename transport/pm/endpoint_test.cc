// SPDX-License-Identifier: Apache-2.0
// What docs/protocol/9-pm.md promises, on a network that does exactly what each test wants.
#include "transport/pm/endpoint.h"

#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/endpoint_test.h"

namespace sekisho::pm {
namespace {

using sim::Cluster;

TEST(Endpoint, FirstMessageArrivesAfterOneAndAHalfRoundTrips) {
  Cluster cluster(2);
  MakeSteady(cluster);

  cluster.SendText(0, 1, 0, 100);
  ASSERT_TRUE(cluster.Run(kSecond, [&] { return cluster.delivered(1) == 1; }));

  EXPECT_EQ(cluster.network().now(), 3 * kOneWay);
}

TEST(Endpoint, WhoHasNothingToSayMayAcknowledgeAtOnce) {
  Cluster cluster(2);
  Connect(cluster);
  std::vector<std::uint8_t> room(kDatagramMax);
  Address to;
  for (const bool at_once : {false, true}) {
    std::vector<std::uint8_t> datagram(kDatagramMax);
    ASSERT_FALSE(cluster[0].Send(1, 0, Bytes(room).first(8), cluster.now()));
    datagram.resize(cluster[0].NextDatagram(cluster.now(), datagram, to));
    ASSERT_GT(datagram.size(), 0u);
    cluster[1].OnDatagram(Cluster::AddressOf(0), datagram, false, cluster.now());
    if (at_once) cluster[1].AcknowledgeAtOnce();

    EXPECT_EQ(cluster[1].NextDatagram(cluster.now(), room, to) > 0, at_once);
    cluster.Pump(0);
    cluster.Pump(1);
    cluster.Run(20 * kMillisecond);
  }
}

TEST(Endpoint, IdleLinkSendsAtOnce) {
  Cluster cluster(2);
  Connect(cluster);
  const std::uint64_t before = cluster.delivered(1);
  const Nanos start = cluster.network().now();

  cluster.SendText(0, 1, 0, 8);
  ASSERT_TRUE(cluster.Run(kSecond, [&] { return cluster.delivered(1) > before; }));

  EXPECT_EQ(cluster.network().now() - start, kOneWay);
}

TEST(Endpoint, ALostMessageCostsAboutOneRoundTrip) {
  Cluster cluster(2);
  Connect(cluster);
  const std::uint64_t before = cluster.delivered(1);
  int count = 0;
  cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes) {
    return from != 0 || ++count != 1;
  };
  const Nanos start = cluster.network().now();

  cluster.SendText(0, 1, 0, 8);  // lost
  cluster.SendText(0, 1, 0, 8);  // its acknowledgement shows the gap
  ASSERT_TRUE(cluster.Run(kSecond, [&] { return cluster.delivered(1) == before + 2; }));

  EXPECT_LE(cluster.network().now() - start, 4 * kOneWay);
  EXPECT_EQ(cluster[0].counters().timeouts, 0u);
}

TEST(Endpoint, AMessageStuckInOneChannelDoesNotStopAnother) {
  Cluster cluster(2);
  Connect(cluster);
  bool first_lost = false;
  cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes) {
    if (from != 0 || first_lost) return true;
    first_lost = true;
    return false;
  };
  std::vector<int> order;
  cluster.on_turn = [&](std::uint32_t node) {
    Message message;
    while (cluster[node].Receive(message)) {
      order.push_back(message.channel);
      (void)cluster[node].Release(message.source, message.channel, cluster.now());
    }
  };

  cluster.SendText(0, 1, 0, 8);
  cluster.SendText(0, 1, 1, 8);
  cluster.Run(kSecond);

  EXPECT_EQ(order, (std::vector<int>{1, 0}));
}

TEST(Endpoint, AnUnreadChannelCostsNoPacketAndStopsNoOther) {
  Cluster cluster(2, [](Config& config) { config.receive_ring = 4096; });
  Connect(cluster);
  std::uint64_t read = 0;
  cluster.on_turn = [&](std::uint32_t node) {
    Message message;
    while (cluster[node].Receive(message)) {
      if (message.channel == 0) continue;  // kept open: its channel fills up
      ++read;
      (void)cluster[node].Release(message.source, message.channel, cluster.now());
    }
  };

  for (int i = 0; i < 20; ++i) cluster.SendText(0, 1, 0, 1000);
  for (int i = 0; i < 20; ++i) cluster.SendText(0, 1, 1, 1000);
  cluster.Run(100 * kMillisecond);

  EXPECT_EQ(read, 20u);
  EXPECT_EQ(cluster[0].counters().retransmitted, 0u);
  EXPECT_FALSE(cluster[0].Drained(1));
}

TEST(Endpoint, SeveralMessagesOfAChannelAreOpenAtOnce) {
  Cluster cluster(2, [](Config& config) { config.receive_ring = 4096; });
  Connect(cluster);
  std::vector<Message> open;
  cluster.on_turn = [&](std::uint32_t node) {
    Message message;
    while (node == 1 && cluster[1].Receive(message)) open.push_back(message);
  };

  for (int i = 0; i < 5; ++i) cluster.SendText(0, 1, 0, 1000);
  cluster.Run(100 * kMillisecond);
  ASSERT_EQ(open.size(), 4u) << "as many as the ring holds";
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(open[i].bytes.size(), 1000u);
  EXPECT_FALSE(cluster[1].HasMessage());

  EXPECT_FALSE(cluster[1].Release(0, 0, cluster.now()));
  cluster.Run(100 * kMillisecond);
  EXPECT_EQ(open.size(), 5u);
  cluster[1].DropOpen();
  cluster[1].Hold(0, 0, open[2].end);
  open.clear();
  cluster.on_turn(1);
  EXPECT_EQ(open.size(), 2u) << "those that nobody holds come again";
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(cluster[1].Release(0, 0, cluster.now()));
  EXPECT_EQ(cluster[1].Release(0, 0, cluster.now()), Error::kBadSequence);
}

TEST(Endpoint, WhatIsGivenBackAgainOrInAnotherSessionChangesNothing) {
  Cluster cluster(2);
  Connect(cluster);
  Endpoint& to = cluster[1];
  std::vector<Message> messages;
  cluster.on_turn = [&](std::uint32_t node) {
    Message message;
    while (node == 1 && to.Receive(message)) messages.push_back(message);
  };
  for (int i = 0; i < 3; ++i) cluster.SendText(0, 1, 0, 8);
  cluster.Run(100 * kMillisecond);
  ASSERT_EQ(messages.size(), 3u);
  const std::uint32_t session = to.peer_session(0);
  const auto consumed = [&to] { return to.receive_stream(0, 0).consumed; };
  const std::uint64_t before = consumed();

  to.GiveBack(0, 0, session + 1, messages[2].end);
  to.GiveBack(7, 0, session, messages[2].end);
  to.GiveBack(1, 0, session, messages[2].end);
  to.GiveBack(0, 200, session, messages[2].end);
  EXPECT_EQ(consumed(), before);
  to.GiveBack(0, 0, session, messages[1].end);
  EXPECT_EQ(consumed(), messages[1].end);
  to.GiveBack(0, 0, session, messages[0].end);
  to.GiveBack(0, 0, session, messages[1].end);
  EXPECT_EQ(consumed(), messages[1].end);
  to.GiveBack(0, 0, session, UINT64_MAX);
  EXPECT_EQ(consumed(), messages[2].end);
  EXPECT_EQ(to.Check(), nullptr);
}

TEST(Endpoint, SmallMessagesArePackedWhileOthersAreInFlight) {
  Cluster cluster(2);
  Connect(cluster);
  const std::uint64_t before = cluster[0].counters().datagrams_out;

  for (int i = 0; i < 1000; ++i) cluster.SendText(0, 1, 0, 8);
  cluster.Run(kSecond);

  EXPECT_EQ(cluster.delivered(1), 1004u);
  EXPECT_LT(cluster[0].counters().datagrams_out - before, 60u);
}

TEST(Endpoint, EmptyAndHugeMessagesArrive) {
  Cluster cluster(2, [](Config& config) { config.send_ring = 4096, config.receive_ring = 8192; });
  Connect(cluster);
  std::vector<std::uint8_t> huge(1'000'000);
  for (std::size_t i = 0; i < huge.size(); ++i) huge[i] = static_cast<std::uint8_t>(i * 7 >> 3);
  std::size_t given = 0;
  std::vector<std::uint8_t> got;
  int empty = 0, ends = 0;
  cluster.on_turn = [&](std::uint32_t node) {
    Message message;
    while (cluster[node].Receive(message)) {
      if (!message.more && message.bytes.size() == 0) ++empty;
      got.insert(got.end(), message.bytes.first.begin(), message.bytes.first.end());
      got.insert(got.end(), message.bytes.second.begin(), message.bytes.second.end());
      ends += message.more ? 0 : 1;
      (void)cluster[node].Release(message.source, message.channel, cluster.now());
    }
    if (node == 0) given += cluster[0].Append(1, 0, Bytes(huge).subspan(given), cluster.now());
  };

  ASSERT_FALSE(cluster[0].Send(1, 0, {}, cluster.now()));
  ASSERT_EQ(cluster[0].Send(1, 0, huge, cluster.now()), Error::kTooLong);
  ASSERT_FALSE(cluster[0].Begin(1, 0, static_cast<std::uint32_t>(huge.size()), cluster.now()));
  cluster.Pump(0);
  ASSERT_TRUE(cluster.Run(10 * kSecond, [&] { return ends == 2; }));

  EXPECT_EQ(empty, 1);
  EXPECT_EQ(got, huge);
}

TEST(Endpoint, PathMtuIsFoundAndANarrowerPathSurvived) {
  Cluster cluster(2, [](Config& config) { config.datagram_max = 9000; });
  Connect(cluster);
  cluster.network().link(0, 1).mtu = 8972;
  const auto flood = [&] {
    for (int i = 0; i < 200; ++i) cluster.SendText(0, 1, 0, 30000), cluster.Run(kMillisecond);
  };
  flood();
  EXPECT_EQ(cluster[0].session(1).mtu, 8972);

  cluster.network().link(0, 1).mtu = 1300;
  const std::uint64_t before = cluster.delivered(1);
  for (int i = 0; i < 30; ++i) cluster.SendText(0, 1, 0, 4000);
  cluster.Run(5 * kSecond);

  EXPECT_EQ(cluster.delivered(1), before + 30);
  EXPECT_EQ(cluster[0].session(1).mtu, 1200);
  EXPECT_GT(cluster[0].counters().cut_smaller, 0u);
}

// The simulator found this: acknowledgements of small packets kept every time-out away.
TEST(Endpoint, ANarrowerPathIsNoticedWhileSmallPacketsPass) {
  Cluster cluster(2);
  Connect(cluster);
  for (int i = 0; i < 20; ++i) cluster.SendText(0, 1, 0, 30'000), cluster.Run(kMillisecond);
  ASSERT_EQ(cluster[0].session(1).mtu, 1472);

  cluster.network().link(0, 1).mtu = 1300;
  const std::uint64_t before = cluster.delivered(1);
  for (int i = 0; i < 5; ++i) cluster.SendText(0, 1, 0, 20'000);
  for (int i = 0; i < 100; ++i) cluster.SendText(0, 1, 1, 8), cluster.Run(kMillisecond);

  EXPECT_EQ(cluster.delivered(1), before + 105);
}

// A sender's interface and its receiver's may carry more than the path between them.
TEST(Endpoint, AProbeThatItsPathDoesNotCarryIsNoLoss) {
  for (const bool is_lost : {false, true}) {
    Cluster cluster(2, [](Config& config) { config.datagram_max = 9000; });
    Connect(cluster);
    cluster.network().link(0, 1).mtu = 1472;
    int probes = 0, before_loss = is_lost ? 30 : 0;
    cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes datagram) {
      probes += datagram.size() > 1472 ? 1 : 0;
      return from != 0 || before_loss == 0 || --before_loss > 0;
    };
    for (int i = 0; i < 20; ++i) cluster.SendText(0, 1, 0, 30'000), cluster.Run(kMillisecond);

    ASSERT_EQ(probes, 3);
    EXPECT_EQ(cluster[0].session(1).mtu, 1472);
    EXPECT_EQ(cluster[1].session(0).last_loss > 0, is_lost);
    EXPECT_EQ(cluster[0].session(1).last_loss > 0, is_lost);
  }
}

TEST(Endpoint, WhatTheInterfaceRefusesIsNotTriedAgainSoon) {
  Cluster cluster(2, [](Config& config) { config.datagram_max = 8972; });
  Connect(cluster);
  cluster.interface_mtu = 1472;
  int gaps = 0;
  std::uint64_t last = 0;
  cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes datagram) {
    Packet packet;
    if (from != 0 || ParsePacket(datagram, packet) != ParseError::kNone) return true;
    gaps += last != 0 && packet.header.number != last + 1 ? 1 : 0;
    last = packet.header.number;
    return true;
  };
  const auto flood = [&] {
    for (int i = 0; i < 20; ++i) cluster.SendText(0, 1, 0, 30'000), cluster.Run(kMillisecond);
    cluster.Run(kSecond);
  };
  flood();
  EXPECT_EQ(cluster[0].session(1).mtu, 1472);
  EXPECT_EQ(cluster[0].counters().mtu_probes, 3u) << "1452, 1472 and 4052, once each";
  EXPECT_EQ(gaps, 0) << "nobody saw the number of what was refused";
  EXPECT_EQ(cluster[0].session(1).in_flight, 0u);
  EXPECT_LT(cluster[1].session(0).last_loss, 0);

  cluster.interface_mtu = 9000;
  cluster.Run(600 * kSecond);
  flood();
  EXPECT_EQ(cluster[0].session(1).mtu, 8972);
}

TEST(Endpoint, AProbeThatOthersOvertakeIsNotLost) {
  Cluster cluster(2, [](Config& config) { config.datagram_max = 8972; });
  Connect(cluster);
  std::vector<std::vector<std::uint8_t>> kept;
  std::size_t mtu = cluster[0].session(1).mtu;
  cluster.on_datagram = [&](std::uint32_t from, std::uint32_t, Bytes datagram) {
    mtu = std::max<std::size_t>(mtu, cluster[0].session(1).mtu);
    if (from != 0 || datagram.size() <= mtu) return true;
    kept.emplace_back(datagram.begin(), datagram.end());
    return false;
  };
  for (int i = 0; i < 20; ++i) {
    cluster.SendText(0, 1, 0, 30'000);
    cluster.Run(500 * kMicrosecond);
    for (const auto& datagram : std::exchange(kept, {})) cluster.Deliver(0, 1, datagram);
    cluster.Run(kMillisecond);
  }

  EXPECT_EQ(cluster[0].session(1).mtu, 8972);
  EXPECT_EQ(cluster[0].counters().mtu_probes, 5u);
  EXPECT_LT(cluster[1].session(0).last_loss, 0);
}

// Lowered meanwhile, or the peer is elsewhere now.
TEST(Endpoint, WhatTheInterfaceDoesNotTakeAnyMoreIsCutAtOnce) {
  Cluster cluster(2, [](Config& config) { config.datagram_max = 8972; });
  Connect(cluster);
  for (int i = 0; i < 20; ++i) cluster.SendText(0, 1, 0, 30'000), cluster.Run(kMillisecond);
  ASSERT_EQ(cluster[0].session(1).mtu, 8972);

  cluster.interface_mtu = 1472;
  const std::uint64_t before = cluster.delivered(1);
  cluster.SendText(0, 1, 0, 30'000);
  EXPECT_EQ(cluster[0].session(1).mtu, 1200);
  for (int i = 0; i < 9; ++i) cluster.SendText(0, 1, 0, 30'000), cluster.Run(kMillisecond);
  cluster.Run(kSecond);

  EXPECT_EQ(cluster.delivered(1), before + 10);
  EXPECT_EQ(cluster[0].session(1).mtu, 1472);
  EXPECT_EQ(cluster[0].counters().timeouts, 0u);
}

TEST(Endpoint, ReorderingIsLearnedAndUndone) {
  Cluster cluster(2);
  Connect(cluster);
  sim::Link& link = cluster.network().link(0, 1);
  link.reorder = 0.05;
  link.reorder_by = 300 * kMicrosecond;

  for (int i = 0; i < 2000; ++i) {
    cluster.SendText(0, 1, 0, 1000);
    cluster.Run(20 * kMicrosecond);
  }
  cluster.Run(kSecond);

  EXPECT_EQ(cluster.delivered(1), 2004u);
  EXPECT_LT(cluster[0].counters().retransmitted, 60u) << "of about 100 late packets";
}

}  // namespace
}  // namespace sekisho::pm
