// SPDX-License-Identifier: Apache-2.0
// Two contexts' remote memory with a queue between them for a network.
#include "transport/pm/remote_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/errors.h"
#include "transport/pm/near_copy.h"

namespace sekisho::pm {
namespace {

using Text = std::vector<std::uint8_t>;

class Node final : public RemotePort {
 public:
  Node(NodeId id, std::uint16_t nodes) : id_(id) { EXPECT_FALSE(memory.Init(id, nodes, *this)); }

  bool Send(NodeId, Bytes head, Bytes body) override {
    if (sent.size() >= room) return false;
    Text text(head.begin(), head.end());
    text.insert(text.end(), body.begin(), body.end());
    sent.push_back(text);
    return true;
  }
  bool IsGone(NodeId) override { return peer_is_gone; }
  void Await(NodeId, bool awaits) override { awaits_peer = awaits; }
  std::uint32_t Session(NodeId) override { return peer_session; }
  bool MayBeNear(NodeId) override { return is_near; }
  bool Copy(const NearPlace& from, std::uint64_t secret, MutableBytes to) override {
    ++copies;
    std::uint64_t proof;
    if (!may_copy) return false;
    std::memcpy(&proof, reinterpret_cast<const void*>(from.proof), sizeof proof);
    if (proof != secret) return false;
    std::memcpy(to.data(), reinterpret_cast<const void*>(from.address), to.size());
    return true;
  }
  std::uint32_t Process() override { return 1000u + id_; }
  std::uint64_t Random() override { return next_random += 0x9e3779b97f4a7c15; }

  RegionName Register(std::int32_t user, Text& text) {
    RegionName name;
    EXPECT_FALSE(memory.Register(user, text.data(), text.size(), name));
    return name;
  }

  RemoteMemory memory;
  std::deque<Text> sent;
  std::size_t room = 3;
  bool peer_is_gone = false, is_near = false, may_copy = true, awaits_peer = false;
  std::uint32_t peer_session = 1;
  int copies = 0;
  std::uint64_t next_random = 1;

 private:
  NodeId id_;
};

Text Pattern(std::size_t size, unsigned seed) {
  Text text(size);
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + seed);
  return text;
}

class RemoteMemoryTest : public ::testing::Test {
 protected:
  // What was sent arrives, cut in two at changing places, as at the end of a ring.
  void Exchange(int turns = 1000) {
    for (int i = 0; i < turns; ++i) {
      Node* const ends[] = {&a_, &b_};
      for (int from = 0; from < 2; ++from) {
        if (ends[from]->sent.empty()) continue;
        const Text text = std::move(ends[from]->sent.front());
        ends[from]->sent.pop_front();
        const std::size_t cut = static_cast<std::size_t>(i) * 13 % (text.size() + 1);
        ends[1 - from]->memory.OnMessage(static_cast<NodeId>(from),
                                         {Bytes(text).first(cut), Bytes(text).subspan(cut)});
      }
      a_.memory.Pump();
      b_.memory.Pump();
    }
  }
  void Inject(const RemoteMessage& message, const Text& body = {}) {
    Text text;
    const RemoteHead head = WriteRemoteHead(message);
    text.assign(head.begin(), head.end());
    text.insert(text.end(), body.begin(), body.end());
    b_.memory.OnMessage(0, {text, {}});
  }
  RemoteMessage WriteTo(const RegionName& name, std::uint64_t offset, std::uint64_t length) {
    RemoteMessage message;
    message.last = true;
    message.region = name.region;
    message.key = name.key;
    message.offset = offset;
    message.length = length;
    return message;
  }
  RemoteWhat Answered() {
    b_.memory.Pump();
    if (b_.sent.empty()) return RemoteWhat::kWrite;
    const auto what = static_cast<RemoteWhat>(b_.sent.front()[0]);
    b_.sent.pop_front();
    return what;
  }

  Node a_{0, 3}, b_{1, 3};
  std::uint32_t number_ = 0;
};

TEST_F(RemoteMemoryTest, AHeadIsReadAsItWasWritten) {
  RemoteMessage message;
  message.what = RemoteWhat::kRead;
  message.near = true;
  message.operation = 0x01020304;
  message.region = 7;
  message.key = 1ull << 63;
  message.offset = 11, message.length = 13;
  message.place = {17, 19, 23};
  message.token = 29;
  const RemoteHead head = WriteRemoteHead(message);
  RemoteMessage again;
  Pieces body;
  ASSERT_TRUE(ParseRemoteMessage({Bytes(head).first(5), Bytes(head).subspan(5)}, again, body));
  EXPECT_EQ(again, message);
  EXPECT_EQ(body.size(), 0u);

  RemoteHead bad = head;
  bad[1] |= 4;
  EXPECT_FALSE(ParseRemoteMessage({bad, {}}, again, body)) << "an unknown flag";
  bad = head, bad[0] = 10;
  EXPECT_FALSE(ParseRemoteMessage({bad, {}}, again, body)) << "an unknown kind";
  EXPECT_FALSE(ParseRemoteMessage({Bytes(head).first(63), {}}, again, body)) << "short";
  Text longer(head.begin(), head.end());
  longer.push_back(0);
  EXPECT_FALSE(ParseRemoteMessage({longer, {}}, again, body)) << "bytes where none belong";
}

TEST_F(RemoteMemoryTest, WritesAndReadsArriveWhateverTheirSize) {
  for (const std::size_t size : {1u, 63u, 4096u, 16384u, 16385u, 300'000u}) {
    Text source = Pattern(size, 1), target(size + 20, 0xee), back(size, 0);
    const RegionName local = a_.Register(0, source), remote = b_.Register(0, target);
    const RegionName into = a_.Register(0, back);
    RegionName part = remote;
    part.offset = 10, part.length = size;

    ASSERT_FALSE(a_.memory.Write(part, local, size, number_));
    Exchange();
    EXPECT_FALSE(a_.memory.has_operations());
    EXPECT_EQ(Text(target.begin() + 10, target.end() - 10), source);
    EXPECT_EQ(Text(target.begin(), target.begin() + 10), Text(10, 0xee));
    EXPECT_EQ(Text(target.end() - 10, target.end()), Text(10, 0xee));

    ASSERT_FALSE(a_.memory.Read(part, into, size, number_));
    Exchange();
    EXPECT_FALSE(a_.memory.is_busy() || b_.memory.is_busy());
    EXPECT_EQ(back, source);
    EXPECT_FALSE(a_.memory.TakeFailure());
    for (const RegionName& name : {local, into}) EXPECT_FALSE(a_.memory.Unregister(name));
    EXPECT_FALSE(b_.memory.Unregister(remote));
  }
  EXPECT_EQ(a_.memory.malformed() + b_.memory.malformed(), 0u);
}

TEST_F(RemoteMemoryTest, InsideAHostOneCopyIsEnough) {
  a_.is_near = b_.is_near = true;
  Text source = Pattern(100'000, 2), target(100'000), back(100'000);
  const RegionName local = a_.Register(0, source), remote = b_.Register(0, target);
  const RegionName into = a_.Register(0, back);

  ASSERT_FALSE(a_.memory.Write(remote, local, source.size(), number_));
  Exchange(10);
  EXPECT_EQ(target, source);
  ASSERT_FALSE(a_.memory.Read(remote, into, source.size(), number_));
  Exchange(10);
  EXPECT_EQ(back, source);

  EXPECT_EQ(b_.memory.near_copies(), 1u);
  EXPECT_EQ(a_.memory.near_copies(), 1u);
  EXPECT_FALSE(a_.memory.is_busy() || b_.memory.is_busy());
}

TEST_F(RemoteMemoryTest, WritesThatMayNotBeCopiedAreSent) {
  a_.is_near = b_.is_near = true;
  b_.may_copy = false;
  Text here = Pattern(50'000, 3), there(50'000);
  const RegionName local = a_.Register(0, here), remote = b_.Register(0, there);
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(a_.memory.Write(remote, local, here.size(), number_));
    Exchange(100);
  }
  EXPECT_EQ(there, here);
  EXPECT_EQ(b_.copies, 1) << "tried again";
  EXPECT_FALSE(a_.memory.is_busy() || b_.memory.is_busy());
}

TEST_F(RemoteMemoryTest, ReadsThatMayNotBeCopiedAreSent) {
  a_.is_near = b_.is_near = true;
  a_.may_copy = false;
  Text here(50'000), there = Pattern(50'000, 4);
  const RegionName local = a_.Register(0, here), remote = b_.Register(0, there);
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(a_.memory.Read(remote, local, here.size(), number_));
    Exchange(100);
  }
  EXPECT_EQ(here, there);
  EXPECT_EQ(a_.copies, 1) << "tried again";
  EXPECT_FALSE(a_.memory.is_busy() || b_.memory.is_busy());
}

TEST_F(RemoteMemoryTest, AFalsePlaceIsAskedOnce) {
  b_.is_near = true;
  Text target(8192, 1);
  const RegionName name = b_.Register(0, target);
  const std::uint64_t proof = NearProof(name.key, 0), others = NearProof(name.key, 2);
  RemoteMessage offer = WriteTo(name, 0, 8192);
  offer.what = RemoteWhat::kOffer;
  offer.last = false;
  const Text bytes(8192, 9);
  offer.place = {1, reinterpret_cast<std::uintptr_t>(bytes.data()),
                 reinterpret_cast<std::uintptr_t>(&others)};
  Inject(offer);
  EXPECT_EQ(Answered(), RemoteWhat::kResend);
  offer.place.proof = reinterpret_cast<std::uintptr_t>(&proof);  // now it would do
  Inject(offer);
  EXPECT_EQ(Answered(), RemoteWhat::kResend);
  EXPECT_EQ(b_.copies, 1);
  EXPECT_EQ(target, Text(8192, 1));

  Node other(1, 3);
  other.is_near = true;
  RegionName same = other.Register(kEveryNode, target);
  ASSERT_EQ(same.key, name.key);
  const RemoteHead head = WriteRemoteHead(offer);
  other.memory.OnMessage(0, {head, {}});
  EXPECT_EQ(target, Text(8192, 9)) << "by who shows its own";
}

TEST_F(RemoteMemoryTest, NothingOutsideTheRegionIsTouched) {
  Text target(100, 0xaa);
  const RegionName name = b_.Register(0, target);
  const Text bytes(60, 1);
  const std::uint64_t top = ~std::uint64_t{0};

  for (const std::uint64_t offset : {std::uint64_t{41}, std::uint64_t{100}, std::uint64_t{101},
                                     top - 59, top, std::uint64_t{1} << 63}) {
    Inject(WriteTo(name, offset, 60), bytes);
    EXPECT_EQ(Answered(), RemoteWhat::kRefused) << offset;
    RemoteMessage read = WriteTo(name, offset, 60);
    read.what = RemoteWhat::kRead;
    read.last = false;
    Inject(read);
    EXPECT_EQ(Answered(), RemoteWhat::kRefused) << offset;
  }
  RegionName other = name;
  other.key ^= 1;
  Inject(WriteTo(other, 0, 60), bytes);
  EXPECT_EQ(Answered(), RemoteWhat::kRefused) << "a guessed key";
  other = name;
  other.region = kRemoteRegions;
  Inject(WriteTo(other, 0, 60), bytes);
  EXPECT_EQ(Answered(), RemoteWhat::kRefused) << "no such region";
  EXPECT_EQ(target, Text(100, 0xaa));

  Inject(WriteTo(name, 40, 60), bytes);
  EXPECT_EQ(Answered(), RemoteWhat::kDone) << "to its very end";
}

TEST_F(RemoteMemoryTest, ARegionIsForWhomItWasRegistered) {
  Text target(100, 0xaa);
  const Text bytes(10, 1);
  for (const std::int32_t user : {1, 2}) {  // its owner only; another
    Inject(WriteTo(b_.Register(user, target), 0, 10), bytes);
    EXPECT_EQ(Answered(), RemoteWhat::kRefused) << user;
  }
  EXPECT_EQ(target, Text(100, 0xaa));
  Inject(WriteTo(b_.Register(kEveryNode, target), 0, 10), bytes);
  EXPECT_EQ(Answered(), RemoteWhat::kDone);
}

TEST_F(RemoteMemoryTest, WhatIsUnregisteredIsRefusedAlsoInTheMiddle) {
  Text source = Pattern(200'000, 5), target(200'000);
  const RegionName local = a_.Register(0, source), remote = b_.Register(0, target);
  ASSERT_FALSE(a_.memory.Read(remote, local, source.size(), number_));
  EXPECT_EQ(a_.memory.Unregister(local), Error::kWouldBlock) << "in use";
  Exchange(3);
  ASSERT_FALSE(b_.memory.Unregister(remote));
  Text next(200'000);
  const RegionName same_place = b_.Register(0, next);
  EXPECT_EQ(same_place.region, remote.region);
  Exchange();
  EXPECT_EQ(a_.memory.TakeFailure(), Error::kRefused);
  EXPECT_FALSE(a_.memory.TakeFailure()) << "said once";
  EXPECT_FALSE(a_.memory.Unregister(local));
  EXPECT_EQ(a_.memory.Unregister(local), Error::kBadSequence) << "twice";
}

TEST_F(RemoteMemoryTest, OperationsOfAPeerThatWasStartedAnewFail) {
  Text source = Pattern(200'000, 6), target(200'000);
  const RegionName local = a_.Register(0, source), remote = b_.Register(0, target);
  ASSERT_FALSE(a_.memory.Write(remote, local, source.size(), number_));
  ASSERT_FALSE(a_.memory.Read(remote, local, source.size(), number_));
  Exchange(1);
  a_.peer_session = b_.peer_session = 2;
  Exchange(100);
  EXPECT_EQ(a_.memory.TakeFailure(), Error::kPeerGone);
  EXPECT_FALSE(a_.memory.is_busy());
  EXPECT_FALSE(b_.memory.is_busy()) << "still serves the old one";
}

TEST_F(RemoteMemoryTest, AnAnswerIsAwaitedUntilTheLastOperationIsOver) {
  Text source = Pattern(2'000, 6), target(2'000);
  const RegionName local = a_.Register(0, source), remote = b_.Register(0, target);
  ASSERT_FALSE(a_.memory.Write(remote, local, source.size(), number_));
  EXPECT_TRUE(a_.awaits_peer);
  ASSERT_FALSE(a_.memory.Read(remote, local, source.size(), number_));
  while (a_.memory.has_operations()) {
    EXPECT_TRUE(a_.awaits_peer);
    Exchange(1);
  }
  EXPECT_FALSE(a_.awaits_peer);
  EXPECT_FALSE(b_.awaits_peer) << "who only serves waits for nobody";

  ASSERT_FALSE(a_.memory.Read(remote, local, source.size(), number_));
  a_.awaits_peer = false;  // an older state was restored
  Exchange(1);
  EXPECT_TRUE(a_.awaits_peer);
}

TEST_F(RemoteMemoryTest, TheNumberUnderWayIsLimitedAtBothEnds) {
  Text source(100), target(100);
  const RegionName local = a_.Register(0, source), remote = b_.Register(0, target);
  for (std::uint32_t i = 0; i < kOperationsPerPeer; ++i) {
    ASSERT_FALSE(a_.memory.Write(remote, local, 10, number_));
  }
  EXPECT_EQ(a_.memory.Write(remote, local, 10, number_), Error::kWouldBlock);
  Exchange(100);
  EXPECT_FALSE(a_.memory.Write(remote, local, 10, number_));

  b_.room = 0;  // it cannot answer
  for (std::uint32_t i = 0; i < 3 * kOperationsPerPeer; ++i) {
    Inject(WriteTo(remote, 0, 10), Text(10, 1));
  }
  EXPECT_EQ(b_.memory.malformed(), 2 * kOperationsPerPeer);
}

TEST_F(RemoteMemoryTest, APeerCannotAnswerWhatWasNotAsked) {
  Text mine(100, 0xaa), target(100);
  const RegionName local = b_.Register(1, mine), remote = a_.Register(1, target);
  b_.is_near = false;
  ASSERT_FALSE(b_.memory.Read(remote, local, 50, number_));
  b_.memory.Pump();
  RemoteMessage data;
  data.what = RemoteWhat::kData;
  data.operation = number_ + kRemoteOperations;  // an older or a later one of that place
  data.length = 50;
  data.last = true;
  Inject(data, Text(50, 1));
  RemoteMessage near;
  near.what = RemoteWhat::kNear;
  near.operation = number_;
  Inject(near);
  EXPECT_EQ(b_.copies, 0) << "it did not ask for a place";
  EXPECT_EQ(mine, Text(100, 0xaa));
  EXPECT_TRUE(b_.memory.has_operations());

  data.operation = number_;
  data.length = 51;  // more than was asked for
  Inject(data, Text(51, 1));
  EXPECT_EQ(b_.memory.TakeFailure(), Error::kRefused);
  EXPECT_EQ(mine, Text(100, 0xaa));
}

TEST(NearCopyTest, CopiesFromAnotherProcessThatHoldsTheSecret) {
  // The child has it at the same place, with other contents.
  void* const page =
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* const bytes = static_cast<std::uint8_t*>(page);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::uint64_t secret = 42;
    std::memset(page, 5, 8192);
    std::memcpy(page, &secret, sizeof secret);
    (void)!write(ready[1], "x", 1);
    for (;;) pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);

  NearPlace place = {static_cast<std::uint32_t>(child), reinterpret_cast<std::uintptr_t>(page) + 8,
                     reinterpret_cast<std::uintptr_t>(page)};
  Text got(5000);
  EXPECT_FALSE(CopyNear(place, 43, got));
  EXPECT_EQ(got, Text(5000)) << "copied without the secret";
  const bool permitted = CopyNear(place, 42, got);
  if (permitted) {  // a kernel may forbid it
    EXPECT_EQ(got, Text(5000, 5));
  }
  place.address = 64;  // nothing is there
  EXPECT_FALSE(CopyNear(place, 42, got));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  place.address = reinterpret_cast<std::uintptr_t>(page);
  EXPECT_FALSE(CopyNear(place, 42, got)) << "it is dead";
  bytes[0] = 42;
  place.process = static_cast<std::uint32_t>(getpid());
  EXPECT_FALSE(CopyNear(place, 42, got)) << "our own memory";
  for (const int fd : ready) close(fd);
  munmap(page, 8192);
}

}  // namespace
}  // namespace sekisho::pm
