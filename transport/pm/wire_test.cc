// SPDX-License-Identifier: Apache-2.0
// Sleeping in the call that receives: Wire::Await.
#include "transport/pm/wire.h"

#include <poll.h>

#include <thread>

#include <gtest/gtest.h>

#include "transport/pm/guarded_node.h"
#include "transport/pm/socket_sleep.h"

namespace sekisho::pm {
namespace {

class Await : public testing::Test {
 protected:
  void SetUp() override {
    Address own;
    ASSERT_FALSE(ParseAddress("127.0.0.1:0", own));
    ASSERT_FALSE(wire_.Open(own, {}));
    ASSERT_FALSE(peer_.Open(own));
  }

  void SetLongest(timeval longest) {
    ASSERT_EQ(setsockopt(wire_.fd(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest), 0);
  }

  // What was sent may be under way for a moment.
  std::size_t PullWhatComes() {
    pollfd socket = {wire_.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&socket, 1, 60'000), 1);
    return wire_.Pull();
  }

  Wire wire_;
  UdpSocket peer_;
};

TEST_F(Await, EndsWithoutADatagramToo) {
  timeval longest{};
  socklen_t size = sizeof longest;
  ASSERT_EQ(getsockopt(wire_.fd(), SOL_SOCKET, SO_RCVTIMEO, &longest, &size), 0);
  EXPECT_EQ(longest.tv_sec, 0);
  EXPECT_GE(longest.tv_usec, SocketSleep::kLongest / kMicrosecond);
  EXPECT_FALSE(wire_.Await().is_there);
}

TEST_F(Await, NothingElseWaits) {
  SetLongest({});  // for ever
  EXPECT_EQ(wire_.Pull(), 0u);
  EXPECT_EQ(wire_.Pull(), 0u);  // it asks for one and for many
}

TEST_F(Await, AnotherThreadEndsIt) {
  SetLongest({});  // only that ends it
  std::thread other([this] { wire_.EndAwait(); });
  const Wire::Pulled awaited = wire_.Await();
  other.join();
  EXPECT_TRUE(awaited.is_there);
  EXPECT_TRUE(awaited.bytes.empty());
}

// One datagram is enough, but if a call of the other thread takes it: then the next ends the sleep.
TEST_F(Await, IsNotEndedTwice) {
  Node node(SmallConfig(0));
  wire_.EndAwait();
  wire_.EndAwait();
  EXPECT_EQ(PullWhatComes(), 1u);
  EXPECT_FALSE(wire_.socket_is_empty());  // it says nothing of what is behind
  wire_.Feed(node.endpoint, kSecond);
  EXPECT_EQ(wire_.Pull(), 0u);
  wire_.EndAwait();
  EXPECT_EQ(PullWhatComes(), 1u);
  wire_.Feed(node.endpoint, kSecond);
  EXPECT_EQ(node.endpoint.counters().malformed, 0u);
}

TEST_F(Await, AnEmptyDatagramOfAStrangerIsCounted) {
  Node node(SmallConfig(0));
  ASSERT_TRUE(peer_.SendTo(wire_.own_address(), {}));
  EXPECT_EQ(PullWhatComes(), 1u);
  wire_.Feed(node.endpoint, kSecond);
  EXPECT_EQ(node.endpoint.counters().malformed, 1u);
}

// What was kept comes before what came later, and is what the socket gave.
TEST_F(Await, WhatCameIsTheNextPull) {
  SetLongest({});
  const std::array<std::uint8_t, 5> first = {1, 2, 3, 4, 5};
  const std::array<std::uint8_t, 3> second = {6, 7, 8};
  ASSERT_TRUE(peer_.SendTo(wire_.own_address(), first));
  const Wire::Pulled awaited = wire_.Await();
  ASSERT_TRUE(peer_.SendTo(wire_.own_address(), second));
  ASSERT_EQ(awaited.bytes.size(), first.size());
  EXPECT_TRUE(std::equal(first.begin(), first.end(), awaited.bytes.begin()));
  EXPECT_EQ(awaited.step, first.size());
  EXPECT_NE(awaited.from.port, 0);
  EXPECT_FALSE(wire_.has_kept());
  wire_.Keep(awaited);
  EXPECT_TRUE(wire_.has_kept());
  EXPECT_EQ(wire_.Pull(), 1u);
  EXPECT_FALSE(wire_.has_kept());
  EXPECT_EQ(wire_.counters().receive_calls, 1u);
  EXPECT_EQ(PullWhatComes(), 1u);
  EXPECT_EQ(wire_.counters().receive_calls, 2u);
}

}  // namespace
}  // namespace sekisho::pm
