// SPDX-License-Identifier: Apache-2.0
#include "deploy/wan/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "deploy/wan/tree_file.h"

namespace sekisho::wan {
namespace {

// h0 and h1 at s1, h2 far away at s2; h0 10.0.0.1 and so on.
std::unique_ptr<Network> Make(const char* tree, NetworkOptions options = {}) {
  std::string error;
  auto graph = ParseTree(tree, "tree", error);
  EXPECT_TRUE(graph) << error;
  EXPECT_TRUE(NumberHosts(*graph, {10 << 24, 8}, error)) << error;
  auto network = Network::Make(*graph, options, error);
  EXPECT_NE(network, nullptr) << error;
  return network;
}

void Send(Network& network, int from, int to, size_t length, int64_t now_ns, uint8_t mark = 0) {
  const std::span<uint8_t> packet = network.Spare();
  std::fill_n(packet.begin(), length, 0);
  packet[0] = 0x45;
  packet[12] = packet[16] = 10;
  packet[15] = static_cast<uint8_t>(from + 1);
  packet[19] = static_cast<uint8_t>(to + 1);
  packet[20] = mark;
  network.Enter(from, length, now_ns);
}

struct Arrival {
  int64_t time_ns;
  int host;
  uint8_t mark;
};

std::vector<Arrival> Drain(Network& network) {
  std::vector<Arrival> arrivals;
  while (const auto next_ns = network.NextNs()) {
    if (const auto one = network.Take(*next_ns))
      arrivals.push_back({*next_ns, one->host, one->bytes[20]});
  }
  return arrivals;
}

constexpr char kTree[] =
    "h0 s1 10 1 0\nh1 s1 20 2 0\ns1 s0 300 30 0\nh2 s2 40 4 0\ns2 s0 500 50 0\n";

TEST(Network, DeliversAfterTheDelayOfTheWholePath) {
  auto network = Make(kTree);

  Send(*network, 0, 2, 100, 1'000'000, 7);

  EXPECT_EQ(network->NextNs(), 1'364'000);
  EXPECT_FALSE(network->Take(1'363'999));
  const auto delivery = network->Take(1'364'000);
  ASSERT_TRUE(delivery);
  EXPECT_EQ(delivery->host, 2);
  EXPECT_EQ(delivery->bytes.size(), 100u);
  EXPECT_EQ(delivery->bytes[20], 7);
  EXPECT_FALSE(network->NextNs());
}

TEST(Network, DeliversEarlierByTheCompensation) {
  auto network = Make(kTree, {.compensate_ns = 13'000});

  Send(*network, 0, 2, 100, 1'000'000);

  EXPECT_EQ(network->NextNs(), 1'351'000);
}

// At 8 Mb/s a byte takes a microsecond.  The near packet enters later and is at the shared link
// earlier.
TEST(Network, ALinkServesPacketsInTheOrderInWhichTheyReachIt) {
  auto network = Make("far s 5000 5000 0\nnear s 10 10 0\nsink s 100 100 8\n");

  Send(*network, 0, 2, 1000, 0, 1);
  Send(*network, 1, 2, 1000, 1'000'000, 2);

  const std::vector<Arrival> arrivals = Drain(*network);
  ASSERT_EQ(arrivals.size(), 2u);
  EXPECT_EQ(arrivals[0].mark, 2);
  EXPECT_EQ(arrivals[0].time_ns, 1'000'000 + 10'000 + 1'000'000 + 100'000);
  EXPECT_EQ(arrivals[1].time_ns, 5'000'000 + 1'000'000 + 100'000);
}

TEST(Network, CountsEveryPacketOnce) {
  auto network = Make("h0 s 10 10 100 0.1\nh1 s 10 10 10 0\nh2 s 3 3 0 0.05\n",
                      {.seed = 3, .memory_bytes_max = 200 * 1500, .denied = {"h2"}});
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 50 == 0) {
      network->Spare()[0] = 0x60;
      network->Enter(0, 40, i * 50'000);
    }
    Send(*network, random() % 3, random() % 4, 40 + random() % 1400, i * 50'000);
    while (network->Take(i * 50'000)) {
    }
  }
  const NetworkCounters& seen = network->counters();
  EXPECT_GT(seen.in_flight, 0u);
  EXPECT_EQ(seen.entered, seen.delivered + seen.lost + seen.overflowed + seen.denied +
                              seen.no_route + seen.not_ipv4 + seen.too_many + seen.in_flight);
  Drain(*network);
  EXPECT_EQ(seen.in_flight, 0u);
  EXPECT_EQ(seen.entered, seen.delivered + seen.lost + seen.overflowed + seen.denied +
                              seen.no_route + seen.not_ipv4 + seen.too_many);
  for (uint64_t count :
       {seen.delivered, seen.lost, seen.overflowed, seen.no_route, seen.not_ipv4}) {
    EXPECT_GT(count, 0u);
  }
}

TEST(Network, RefusesWhatWouldNotFitIntoItsMemory) {
  auto network = Make(kTree, {.memory_bytes_max = 3 * 1500});
  for (int i = 0; i < 5; ++i) Send(*network, 0, 2, 100, 0);

  EXPECT_EQ(network->counters().too_many, 2u);
  EXPECT_EQ(Drain(*network).size(), 3u);
}

TEST(Network, IgnoresGarbage) {
  auto network = Make(kTree);
  std::mt19937 random(9);
  for (int i = 0; i < 20'000; ++i) {
    const std::span<uint8_t> packet = network->Spare();
    const size_t length = random() % 61;
    for (size_t at = 0; at < length; ++at) packet[at] = static_cast<uint8_t>(random());
    if (random() % 2 == 0) packet[0] = static_cast<uint8_t>(0x40 | (packet[0] & 0xf));
    network->Enter(0, length, i);
  }
  EXPECT_EQ(network->counters().entered, 20'000u);
}

}  // namespace
}  // namespace sekisho::wan
