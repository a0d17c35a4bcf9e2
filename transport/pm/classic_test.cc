// SPDX-License-Identifier: Apache-2.0
// Rules S1 to S4 and R1 to R5 of the paper.
#include "transport/pm/classic.h"

#include <cstring>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/sim/network.h"

namespace sekisho::pm {
namespace {

// Two nodes and two wires without delay; time moves only where a test moves it.
struct Pair {
  explicit Pair(std::uint32_t first_number = 0) {
    for (NodeId id = 0; id < 2; ++id) {
      ClassicConfig config;
      config.node = id;
      config.first_number = first_number;
      config.key.fill(3);
      memory[id].resize(ClassicEndpoint::MemoryNeeded(config) + 64);
      const auto address = reinterpret_cast<std::uintptr_t>(memory[id].data());
      EXPECT_FALSE(
          ends[id].Init(config, MutableBytes(memory[id]).subspan((64 - address % 64) % 64), 0));
    }
  }

  bool Send(std::uint32_t value) {
    std::array<std::uint8_t, 4> bytes;
    std::memcpy(bytes.data(), &value, 4);
    return !ends[0].Send(1, bytes, now);
  }

  // Moves what is ready from one end to the other; `keep` decides about each datagram.
  template <typename Keep>
  void Move(std::size_t from, Keep keep) {
    std::vector<std::uint8_t> room(9000);
    Address to;
    for (;;) {
      const std::size_t size = ends[from].NextDatagram(now, room, to);
      if (size == 0) return;
      if (keep()) ends[1 - from].OnDatagram(MutableBytes(room).first(size), now);
    }
  }

  void Read() {
    Message message;
    while (ends[1].Receive(message)) {
      std::uint32_t value;
      std::memcpy(&value, message.bytes.first.data(), 4);
      got.push_back(value);
      (void)ends[1].Release(0, now);
    }
  }

  ClassicEndpoint ends[2];
  std::vector<std::uint8_t> memory[2];
  Nanos now = 0;
  std::vector<std::uint32_t> got;
};

constexpr auto kAll = [] { return true; };

TEST(Classic, MessagesInARowAreAnsweredByOneAck) {
  Pair pair;
  for (std::uint32_t i = 0; i < 20; ++i) ASSERT_TRUE(pair.Send(i));
  pair.Move(0, kAll);
  pair.Move(1, kAll);

  EXPECT_EQ(pair.ends[1].counters().acks, 1u);
  EXPECT_TRUE(pair.ends[0].Drained(1));
}

TEST(Classic, PrecursorLimitHoldsTheRestBack) {
  Pair pair;
  for (std::uint32_t i = 0; i < 64; ++i) ASSERT_TRUE(pair.Send(i));
  EXPECT_FALSE(pair.Send(64)) << "the send buffer is full";
  pair.Move(0, kAll);

  EXPECT_EQ(pair.ends[0].counters().datagrams_out, 32u);
}

TEST(Classic, AGapThrowsAwayWhatFollowsAndANackRepairsIt) {
  Pair pair;
  for (std::uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(pair.Send(i));
  int count = 0;
  pair.Move(0, [&] { return ++count != 4; });
  pair.Read();
  EXPECT_EQ(pair.got.size(), 3u);
  EXPECT_EQ(pair.ends[1].counters().dropped, 6u);

  pair.Move(1, kAll);
  pair.Move(0, kAll);
  pair.Read();

  EXPECT_EQ(pair.got.size(), 10u);
  EXPECT_EQ(pair.ends[1].counters().nacks, 1u);
  EXPECT_EQ(pair.ends[0].counters().resent, 7u);
}

TEST(Classic, ALostTailWaitsForTheTimeout) {
  Pair pair;
  ASSERT_TRUE(pair.Send(1));
  pair.Move(0, [] { return false; });
  EXPECT_EQ(pair.ends[0].NextDeadline(), 20 * kMillisecond);

  pair.now = 20 * kMillisecond;
  pair.ends[0].OnTimer(pair.now);
  pair.Move(0, kAll);
  pair.Read();

  EXPECT_EQ(pair.got, (std::vector<std::uint32_t>{1}));
}

TEST(Classic, EverythingArrivesOnceInOrderAcrossTheWrap) {
  Pair pair(UINT32_MAX - 500);
  sim::Random random(9);
  std::uint32_t next = 0;
  while (pair.got.size() < 2000) {
    while (next < 2000 && pair.Send(next)) ++next;
    pair.Move(0, [&] { return !random.Chance(0.1); });
    if (random.Chance(0.7)) pair.Read();
    pair.Move(1, [&] { return !random.Chance(0.1); });
    pair.now += kMillisecond;
    for (ClassicEndpoint& end : pair.ends) end.OnTimer(pair.now);
    ASSERT_LT(pair.now, 3600 * kSecond);
  }

  for (std::uint32_t i = 0; i < 2000; ++i) EXPECT_EQ(pair.got[i], i);
}

}  // namespace
}  // namespace sekisho::pm
