// SPDX-License-Identifier: Apache-2.0
// The library over real sockets on the loopback interface.
#include "transport/pm/device.h"

#include <vector>

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

std::unique_ptr<Device> OpenNode(NodeId node, bool offload, std::uint32_t datagram_max) {
  Config config;
  config.node = node;
  config.key.fill(9);
  config.incarnation = static_cast<std::uint64_t>(Device::Now());
  config.seed = config.incarnation * 31 + node;
  config.datagram_max = datagram_max;
  Address own;
  EXPECT_FALSE(ParseAddress("127.0.0.1:0", own));
  std::unique_ptr<Device> device;
  EXPECT_FALSE(Device::Open(config, own, {.offload = offload}, nullptr, device));
  return device;
}

// Sends `count` messages of `size` from one node to the other; how many came back whole and in
// order.
void Exchange(Device& from, Device& to, std::uint32_t count, std::size_t size) {
  std::vector<std::uint8_t> text(size);
  std::uint32_t given = 0, taken = 0;
  const Nanos limit = Device::Now() + 20 * kSecond;
  while (taken < count && Device::Now() < limit) {
    while (given < count) {
      for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<std::uint8_t>(given + i * 3);
      if (from.endpoint().Send(1, 0, text, Device::Now())) break;
      ++given;
    }
    from.Progress();
    to.Progress();
    Message message;
    while (to.endpoint().Receive(message)) {
      ASSERT_EQ(message.bytes.size(), size);
      std::vector<std::uint8_t> got(message.bytes.first.begin(), message.bytes.first.end());
      got.insert(got.end(), message.bytes.second.begin(), message.bytes.second.end());
      for (std::size_t i = 0; i < size; ++i) {
        ASSERT_EQ(got[i], static_cast<std::uint8_t>(taken + i * 3));
      }
      ++taken;
      ASSERT_FALSE(to.endpoint().Release(0, 0, Device::Now()));
    }
  }
  EXPECT_EQ(taken, count);
}

TEST(Device, MessagesCrossTheLoopbackWithAndWithoutOffloads) {
  for (const bool offload : {true, false}) {
    for (const std::uint32_t datagram_max : {1472u, 65507u}) {
      const auto a = OpenNode(0, offload, datagram_max);
      const auto b = OpenNode(1, offload, datagram_max);
      ASSERT_TRUE(a && b);
      ASSERT_FALSE(a->endpoint().SetAddress(1, b->own_address()));
      ASSERT_FALSE(b->endpoint().SetAddress(0, a->own_address()));

      Exchange(*a, *b, 2000, 64);
      Exchange(*a, *b, 300, 20'000);

      EXPECT_EQ(a->counters().failed, 0u);
      if (!offload) {
        EXPECT_EQ(a->counters().sent_together, 0u);
      }
    }
  }
}

TEST(Device, ATrainLeavesInOneCall) {
  const auto a = OpenNode(0, true, 1472);
  const auto b = OpenNode(1, true, 1472);
  ASSERT_TRUE(a && b);
  ASSERT_FALSE(a->endpoint().SetAddress(1, b->own_address()));
  ASSERT_FALSE(b->endpoint().SetAddress(0, a->own_address()));
  if (!a->counters().segmentation) GTEST_SKIP() << "no UDP_SEGMENT here";

  Exchange(*a, *b, 500, 60'000);

  // 11 with one message of sendmmsg a datagram.
  EXPECT_GT(a->endpoint().counters().datagrams_out, 13 * a->counters().send_calls);
  EXPECT_EQ(a->counters().failed, 0u);
}

TEST(Device, WaitWakesUpForADatagramAndForATimer) {
  const auto a = OpenNode(0, true, 1472);
  const auto b = OpenNode(1, true, 1472);
  ASSERT_TRUE(a && b);
  ASSERT_FALSE(a->endpoint().SetAddress(1, b->own_address()));
  ASSERT_FALSE(a->endpoint().Send(1, 0, {}, Device::Now()));
  a->Flush();
  Message message;
  bool got = false;
  for (int i = 0; i < 200 && !got; ++i) {
    b->Wait(Device::Now() + 10 * kMillisecond);
    a->Wait(Device::Now() + 10 * kMillisecond);
    got = b->endpoint().Receive(message);
  }
  EXPECT_TRUE(got);
}

TEST(Device, AddressesThatAreNoneAreRefused) {
  Address address;
  EXPECT_FALSE(ParseAddress("127.0.0.1:80", address));
  EXPECT_FALSE(ParseAddress("[::1]:80", address));
  for (const char* text :
       {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:70000", "127.0.0.1:+80", "127.0.0.1: 80",
        "127.0.0.1:18446744073709551696", "::1:80", "[::1:80", "x:1"}) {
    EXPECT_TRUE(ParseAddress(text, address)) << text;
  }
}

}  // namespace
}  // namespace sekisho::pm
