// SPDX-License-Identifier: Apache-2.0
// What an endpoint keeps, and where.
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
  EXPECT_EQ(cluster[1].NextDeadline(), kNever) << "and who will not read it is not waited for";
  reads = true;
  cluster.on_turn(1);
  cluster.Pump(1);
  cluster.Run(3 * kSecond);
  EXPECT_GT(forgotten, 0u) << "it was read, and nothing else happened";

  forgotten = 0;
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
