// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/stream_loop.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sekisho::nxproxy {
namespace {

// A stream, and the two ends of it that programs have.
struct Joined {
  std::unique_ptr<Stream> stream;
  Descriptor outside;
  Descriptor inside;
};

Joined Join() {
  int outer[2];
  int inner[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, outer), 0);
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, inner), 0);
  return {std::make_unique<Stream>(Descriptor(outer[0]), Descriptor(inner[0]), ""),
          Descriptor(outer[1]), Descriptor(inner[1])};
}

StreamLimits Small() {
  StreamLimits limits;
  limits.turn_bytes = Stream::kBufferBytes;
  return limits;
}

std::string Received(const Descriptor& end) {
  std::string all;
  char buffer[64 * 1024];
  for (ssize_t got; (got = recv(end.get(), buffer, sizeof buffer, 0)) > 0;) {
    all.append(buffer, static_cast<size_t>(got));
  }
  return all;
}

void Send(const Descriptor& end, const std::string& bytes) {
  ASSERT_EQ(send(end.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

void Turn(Poller& poller, StreamLoop& loop) {
  poller.RunOnce(0);
  loop.EndTurn();
}

// One that lets streams go, and one that keeps them.
struct TwoLoops {
  TwoLoops() {
    first.SetTagged(&nursery);
    second.SetTagged(&other);
  }
  Poller first, second;
  StreamLoop nursery{first.fd(), Small(), true};
  StreamLoop other{second.fd(), StreamLimits(), false};
};

TEST(StreamLoop, MovesBothWaysAndTellsTheEnd) {
  Poller poller;
  Joined joined = Join();
  StreamLoop loop(poller.fd(), Small(), true);
  poller.SetTagged(&loop);
  loop.Take(std::move(joined.stream));
  Send(joined.outside, "question");
  poller.RunOnce(0);
  EXPECT_EQ(Received(joined.inside), "question");
  Send(joined.inside, "answer");
  poller.RunOnce(0);
  EXPECT_EQ(Received(joined.outside), "answer");
  EXPECT_TRUE(loop.TakeEnded().empty());
  EXPECT_TRUE(loop.TakeRestless().empty());

  shutdown(joined.outside.get(), SHUT_WR);
  joined.inside.reset();
  poller.RunOnce(0);
  const StreamLoop::Streams ended = loop.TakeEnded();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_NE(ended.front()->end(), End::kNone);
  EXPECT_EQ(loop.size(), 0u);
}

TEST(StreamLoop, WhoeverHasALotToMoveLeavesAndLosesNothing) {
  Joined joined = Join();
  TwoLoops two;
  const int room = 1 << 20;
  for (const Descriptor* end : {&joined.outside, &joined.inside}) {
    setsockopt(end->get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  }
  for (int side = 0; side < 2; ++side) {
    setsockopt(joined.stream->fd(side), SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  }
  std::string bytes(Stream::kBufferBytes + 1000, 'a');
  bytes.back() = 'z';
  two.nursery.Take(std::move(joined.stream));
  Send(joined.outside, bytes);
  two.first.RunOnce(0);
  StreamLoop::Streams restless = two.nursery.TakeRestless();
  ASSERT_EQ(restless.size(), 1u);
  EXPECT_EQ(two.nursery.size(), 0u);
  std::string received = Received(joined.inside);
  EXPECT_LT(received.size(), bytes.size());

  Send(joined.outside, "while nobody looked");  // no event is lost
  two.other.Take(std::move(restless.front()));
  Turn(two.second, two.other);
  received += Received(joined.inside);
  EXPECT_EQ(received, bytes + "while nobody looked");
  EXPECT_TRUE(two.other.TakeRestless().empty());
}

TEST(StreamLoop, OnlyThoseLeaveForAgeThatWereThereBefore) {
  Poller poller;
  Joined old = Join();
  Joined young = Join();
  StreamLoop loop(poller.fd(), Small(), true);
  poller.SetTagged(&loop);
  old.stream->id = 1;
  young.stream->id = 2;
  loop.Take(std::move(old.stream));
  EXPECT_TRUE(loop.TakeAged().empty());
  loop.Take(std::move(young.stream));
  const StreamLoop::Streams aged = loop.TakeAged();
  ASSERT_EQ(aged.size(), 1u);
  EXPECT_EQ(aged.front()->id, 1u);
  EXPECT_EQ(loop.size(), 1u);
}

TEST(StreamLoop, OneWithoutAllowanceLeavesTheFirstAndWaitsInTheSecond) {
  Joined joined = Join();
  TwoLoops two;
  joined.stream->owner_traffic = std::make_shared<Traffic>();
  const auto traffic = joined.stream->owner_traffic;
  traffic->is_limited = true;
  two.nursery.Take(std::move(joined.stream));
  StreamLoop::Streams restless = two.nursery.TakeRestless();
  ASSERT_EQ(restless.size(), 1u);
  Send(joined.outside, "later");
  two.other.Take(std::move(restless.front()));
  Turn(two.second, two.other);
  EXPECT_EQ(Received(joined.inside), "");
  EXPECT_GT(two.other.Timeout_ms(), 0);
  traffic->allowance = 100;
  Turn(two.second, two.other);
  EXPECT_EQ(Received(joined.inside), "later");
}

}  // namespace
}  // namespace sekisho::nxproxy
