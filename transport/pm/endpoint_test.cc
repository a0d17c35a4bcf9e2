// SPDX-License-Identifier: Apache-2.0
// What docs/protocol/9-pm.md promises, on a network that does exactly what each test wants.
#include "transport/pm/endpoint.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/endpoint_test.h"

namespace {

std::size_t allocations = 0;

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace sekisho::pm {
namespace {

using sim::Cluster;

Kind KindOf(Bytes datagram) { return static_cast<Kind>(datagram[0] & 15); }

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

TEST(Endpoint, ALargePayloadIsSentFromItsRing) {
  Cluster cluster(2);
  Connect(cluster);
  const std::uint64_t before = cluster.delivered(1);
  std::vector<std::uint8_t> text(900), room(kDatagramMax);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::uint8_t>(i);
  ASSERT_FALSE(cluster[0].Send(1, 0, text, cluster.now()));

  Outgoing out;
  ASSERT_TRUE(cluster[0].NextOutgoing(cluster.now(), room, out));
  ASSERT_GE(out.payload.size(), text.size());
  EXPECT_LT(out.used(), 64u);
  // Head, payload and tail together are the datagram.
  std::vector<std::uint8_t> datagram(room.begin(), room.begin() + static_cast<long>(out.head));
  datagram.insert(datagram.end(), out.payload.begin(), out.payload.end());
  datagram.insert(datagram.end(), room.begin() + static_cast<long>(out.head),
                  room.begin() + static_cast<long>(out.used()));
  EXPECT_EQ(datagram.size(), out.size());
  cluster.Deliver(0, 1, datagram);
  EXPECT_EQ(cluster.delivered(1), before + 1);

  // A small one is copied.
  ASSERT_FALSE(cluster[0].Send(1, 0, Bytes(text).first(8), cluster.now()));
  ASSERT_TRUE(cluster[0].NextOutgoing(cluster.now(), room, out));
  EXPECT_TRUE(out.payload.empty());
  EXPECT_EQ(out.tail, 0u);
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

TEST(Endpoint, StrangersGetNothingAndChangeNothing) {
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

TEST(Endpoint, ARecordedHelloIsAnsweredByNoMoreThanItsLength) {
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

TEST(Endpoint, GenuineDatagramsReplayedAreDropped) {
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

TEST(Endpoint, ARestartedPeerIsFoundAndOldMessagesAreNotGivenToIt) {
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

TEST(Endpoint, PeersThatWereStartedAnewKeepNoRecordsWhileTheOldOnesMessagesAreUnread) {
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

TEST(Endpoint, SilentPeersDoNotKeepTheRecordsThatOthersNeed) {
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

TEST(Endpoint, AnOlderIncarnationIsRefused) {
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

TEST(Endpoint, ASilentPeerIsSuspectedAndThenGone) {
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

TEST(Endpoint, ALongStopOfTheProcessMakesNobodyGone) {
  Cluster cluster(2);
  Connect(cluster);
  cluster.SendText(0, 1, 0, 8);

  cluster[0].OnTimer(cluster.now() + 3600 * kSecond);  // one late expiry is one time-out
  cluster.Pump(0);
  cluster.Run(5 * kSecond);

  EXPECT_EQ(cluster[0].peer_state(1), PeerState::kUp);
}

TEST(Endpoint, AClosedPeerKnowsWhy) {
  Cluster cluster(2);
  Connect(cluster);

  ASSERT_FALSE(cluster[0].Close(1, cluster.now()));
  cluster.Pump(0);
  cluster.Run(kSecond);

  EXPECT_EQ(cluster[1].peer_state(0), PeerState::kGone);
  EXPECT_EQ(cluster[1].peer_reason(0), Reason::kClosed);
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

TEST(Endpoint, NothingIsAllocatedAfterSetUp) {
  Cluster cluster(2);
  Connect(cluster);
  std::vector<std::vector<std::uint8_t>> wire(64, std::vector<std::uint8_t>(1500));
  const std::vector<std::uint8_t> text(300, 'x');
  Address to;
  Message message;

  const std::size_t before = allocations;
  for (int round = 0; round < 100; ++round) {
    const Nanos now = cluster.now() + round * kMillisecond;
    for (int i = 0; i < 10; ++i) (void)cluster[0].Send(1, 0, text, now);
    for (int from = 0; from < 2; ++from) {
      std::size_t count = 0, size;
      while (count < wire.size() && (size = cluster[static_cast<std::size_t>(from)].NextDatagram(
                                         now, wire[count], to)) > 0) {
        Endpoint& other = cluster[static_cast<std::size_t>(1 - from)];
        if (round % 7 != 3) other.OnDatagram(to, std::span(wire[count]).first(size), false, now);
        ++count;
      }
    }
    while (cluster[1].Receive(message)) (void)cluster[1].Release(0, 0, now);
    cluster[0].OnTimer(now + kMillisecond);
    cluster[1].OnTimer(now + kMillisecond);
  }

  EXPECT_EQ(allocations, before);
  EXPECT_GT(cluster[1].counters().messages_in, 100u);
}

// Bytes of the area that are not as Cluster left them, in pieces that share no cache line.
std::size_t Touched(Cluster& cluster, std::uint32_t node) {
  const std::vector<std::uint8_t> memory = cluster.Save(node);
  const std::size_t area = Endpoint::AreaNeeded(cluster[node].config());
  std::size_t touched = 0;
  for (std::size_t at = 0; at < area; at += 64) {
    const auto line = memory.begin() + static_cast<std::ptrdiff_t>(at);
    touched += std::count(line, line + 64, 0xa5) == 64 ? 0 : 64;
  }
  return touched;
}

TEST(Endpoint, APeerTakesHalfAKibibyteAndWithASessionOne) {
  const auto small = [](Config& config) {
    config.channels = 1;
    config.send_ring = config.receive_ring = 4096;
    config.packets = 16;  // records of packets, which all peers share, are used up by few
  };
  constexpr std::size_t kFew = 17, kMore = 64;
  Cluster few(kFew, small), many(kFew + kMore, small);
  const std::size_t silent = (Touched(many, 0) - Touched(few, 0)) / kMore;

  const auto talk = [](Cluster& cluster, std::uint32_t nodes) {
    for (std::uint32_t to = 1; to < nodes; ++to) {
      cluster.SendText(0, to, 0, 100);
      cluster.Run(100 * kMillisecond);
    }
  };
  talk(few, kFew);
  talk(many, kFew + kMore);
  const std::size_t idle = (Touched(many, 0) - Touched(few, 0)) / kMore;

  EXPECT_EQ(many.delivered(kFew + kMore - 1), 1u);
  EXPECT_LE(silent, 512u);
  EXPECT_LE(idle, 1024u);
}

std::size_t forgotten = 0;  // bytes

TEST(Endpoint, RingsThatWereEmptyForASecondAreForgotten) {
  Cluster cluster(2);
  bool reads = true;
  cluster.on_turn = [&](std::uint32_t node) {
    Message message;
    while (reads && cluster[node].Receive(message)) {
      for (const std::uint8_t byte : message.bytes.first) EXPECT_EQ(byte, 'x');
      (void)cluster[node].Release(message.source, message.channel, cluster.now());
    }
  };
  forgotten = 0;
  cluster[1].MindRings([](MutableBytes rings) {
    std::memset(rings.data(), 0, rings.size());
    forgotten += rings.size();
  });
  const Config& config = cluster[1].config();
  Connect(cluster);
  EXPECT_EQ(forgotten, 0u);

  cluster.Run(3 * kSecond);
  EXPECT_EQ(forgotten, std::size_t{config.channels} * (config.send_ring + config.receive_ring));
  EXPECT_EQ(cluster[1].NextDeadline(), kNever) << "once is enough";

  reads = false;
  forgotten = 0;
  cluster.SendText(0, 1, 0, 100);
  cluster.Run(3 * kSecond);
  EXPECT_EQ(forgotten, 0u) << "a message is unread";
  reads = true;
  cluster.SendText(0, 1, 1, 100);
  cluster.Run(3 * kSecond);
  EXPECT_GT(forgotten, 0u);
  EXPECT_EQ(cluster[1].counters().messages_in, 6u);
}

TEST(Endpoint, ConfigurationsOutOfTheirLimitsAreRefused) {
  Config config;
  EXPECT_GT(Endpoint::MemoryNeeded(config), 0u);
  config.send_ring = 5000;
  EXPECT_EQ(Endpoint::MemoryNeeded(config), 0u);
  Endpoint endpoint;
  EXPECT_EQ(endpoint.Init(config, {}, nullptr, 0), Error::kBadConfig);
  config.send_ring = 8192;
  std::array<std::uint8_t, 64> little{};
  EXPECT_EQ(endpoint.Init(config, little, nullptr, 0), Error::kNoMemory);
}

}  // namespace
}  // namespace sekisho::pm
