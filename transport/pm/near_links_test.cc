// SPDX-License-Identifier: Apache-2.0
// Rings between contexts, with a partner who writes what he likes into the memory, and with one who
// does as he should, in another thread.
#include "transport/pm/near_links.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

constexpr Address kOwn{{}, 1}, kOther{{}, 2};

struct Node {
  explicit Node(NodeId node) {
    config.node = node;
    config.channels = 1;
    config.key.fill(7);
    config.incarnation = node + 10u;
    memory.resize(Endpoint::MemoryNeeded(config) + 64);
    auto* const begin = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
    EXPECT_FALSE(endpoint.Init(config, {begin, memory.size() - 64}, nullptr, 1));
    EXPECT_FALSE(endpoint.SetAddress(0, kOwn));
    EXPECT_FALSE(endpoint.SetAddress(1, kOther));
  }

  Config config;
  std::vector<std::uint8_t> memory;
  Endpoint endpoint;
};

// A mapping of a ring's memory, as a partner has one.
class Partner {
 public:
  explicit Partner(int fd) {
    void* at = mmap(nullptr, sizeof(NearMemory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_NE(at, MAP_FAILED);
    memory_ = static_cast<NearMemory*>(at);
  }
  ~Partner() { munmap(memory_, sizeof(NearMemory)); }
  Partner(const Partner&) = delete;
  Partner& operator=(const Partner&) = delete;
  NearMemory& operator*() const { return *memory_; }
  NearMemory* operator->() const { return memory_; }
  MutableBytes bytes() const {
    return {reinterpret_cast<std::uint8_t*>(memory_), sizeof(NearMemory)};
  }

 private:
  NearMemory* memory_;
};

class NearLinksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fd_ = NearMemory::Make();
    ASSERT_GE(fd_, 0);
    ASSERT_FALSE(links_.Join(0, 1, kOther, node_.endpoint.peer_session(1), fd_));
  }
  void TearDown() override { close(fd_); }

  std::size_t Send(Bytes datagram, Nanos now) {
    return links_.Send(node_.endpoint, kOther, datagram, datagram.size(), now);
  }

  int fd_ = -1;
  Node node_{0};
  NearLinks links_;
};

TEST_F(NearLinksTest, SendsWhileTheOtherPolls) {
  const Partner partner(fd_);
  const std::vector<std::uint8_t> datagram(100, 5);
  EXPECT_EQ(Send(datagram, kSecond), 0u) << "it is not there";

  partner->to[1].lease = kSecond + kMillisecond;
  EXPECT_EQ(Send(datagram, kSecond), 100u);
  EXPECT_EQ(Send(datagram, kSecond + kMillisecond), 0u) << "it polls no more";
  partner->to[1].lease = INT64_MAX;
  EXPECT_EQ(Send(datagram, kSecond), 0u) << "by its own clock";
  partner->to[1].lease = kSecond + kMillisecond;
  EXPECT_EQ(Send(std::vector<std::uint8_t>(NearSlot::kBytes + 1), kSecond), 0u) << "too long";

  std::size_t count = 1;
  while (count <= NearParts::kSlots && Send(datagram, kSecond) > 0) ++count;
  EXPECT_EQ(count, NearParts::kSlots) << "then it is full";
  EXPECT_EQ(partner->to[1].slots[0].size, 100u);
  EXPECT_EQ(partner->to[1].slots[0].bytes[99], 5);
}

TEST_F(NearLinksTest, OfManyItSendsWhatFindsASlot) {
  const Partner partner(fd_);
  partner->to[1].lease = kSecond + kMillisecond;
  std::vector<std::uint8_t> datagrams(250);
  for (std::size_t i = 0; i < datagrams.size(); ++i) datagrams[i] = static_cast<std::uint8_t>(i);
  const auto send = [&] { return links_.Send(node_.endpoint, kOther, datagrams, 100, kSecond); };
  EXPECT_EQ(send(), 250u);
  EXPECT_EQ(partner->to[1].slots[1].bytes[99], 199);
  EXPECT_EQ(partner->to[1].slots[2].size, 50u) << "the last is shorter";
  EXPECT_EQ(partner->to[1].slots[2].bytes[49], 249);

  std::size_t slots = 3;
  for (; slots + 3 <= NearParts::kSlots; slots += 3) ASSERT_EQ(send(), 250u);
  EXPECT_EQ(send(), 100 * (NearParts::kSlots - slots)) << "whole datagrams, the first ones";
}

// Or 64 who ask and never come kept out those who would.
TEST_F(NearLinksTest, WhoNeverCameMakesRoomForWhoWould) {
  const Partner partner(fd_);
  partner->to[1].joined = 1;
  for (NodeId node = 2; node <= NearLinks::kMost; ++node) {
    ASSERT_TRUE(links_.HasRoom()) << node;
    const int memory = NearMemory::Make();
    ASSERT_FALSE(links_.Join(0, node, {{}, node}, 1, memory));
    if (node == NearLinks::kMost) Partner(memory)->to[1].joined = 1;
    close(memory);
  }

  EXPECT_TRUE(links_.HasRoom());
  EXPECT_TRUE(links_.IsJoined(1) && links_.IsJoined(NearLinks::kMost)) << "these came";
}

TEST_F(NearLinksTest, PollsOnlyWhileCallsFollowEachOther) {
  const Partner partner(fd_);
  const auto lease = [&] { return partner->to[0].lease.load(); };
  links_.Poll(kSecond, true);
  EXPECT_EQ(lease(), 0) << "once is not a stretch";
  links_.Poll(kSecond + 5 * kMicrosecond, false);
  EXPECT_EQ(lease(), 0) << "something older is elsewhere";
  links_.Poll(kSecond + 10 * kMicrosecond, true);
  EXPECT_GT(lease(), kSecond + 100 * kMicrosecond);
  EXPECT_LT(lease(), kSecond + kMillisecond) << "a keeper looks again then";
  links_.Rest();
  EXPECT_EQ(lease(), 0);
  links_.Poll(kSecond + 20 * kMicrosecond, true);
  EXPECT_EQ(lease(), 0);
  links_.Poll(kSecond + 30 * kMicrosecond, true);
  EXPECT_GT(lease(), kSecond);
  links_.GiveUp();
  EXPECT_EQ(lease(), 0);
  EXPECT_EQ(partner->to[0].left, 1u);
}

TEST_F(NearLinksTest, ALinkThatTheOtherLeftIsDropped) {
  const Partner partner(fd_);
  partner->to[1].joined = 1;
  EXPECT_TRUE(links_.IsJoined(1));
  links_.DropStale(node_.endpoint);
  EXPECT_FALSE(links_.empty());
  partner->to[1].left = 1;
  links_.DropStale(node_.endpoint);
  EXPECT_TRUE(links_.empty());
}

TEST_F(NearLinksTest, AChildOfForkLeavesNothing) {
  const Partner partner(fd_);
  links_.Poll(kSecond, true);
  links_.Poll(kSecond + kMicrosecond, true);
  const std::int64_t lease = partner->to[0].lease;
  const pid_t child = fork();
  if (child == 0) {
    links_.GiveUp();
    _exit(links_.empty() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(partner->to[0].left, 0u);
  EXPECT_EQ(partner->to[0].lease, lease);
}

TEST_F(NearLinksTest, OneThatCanShrinkOrIsShortIsRefused) {
  for (const auto& [size, seals] :
       {std::pair<off_t, int>{sizeof(NearMemory), 0}, {sizeof(NearMemory) - 4096, F_SEAL_SHRINK}}) {
    const int fd = memfd_create("near", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(fd, size), 0);
    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
    EXPECT_TRUE(links_.Join(0, 1, kOther, 0, fd));
    close(fd);
  }
}

void Spoil(NearMemory& memory, std::mt19937_64& random) {
  constexpr std::uint64_t kValues[] = {
      0, 1, 7, 26, NearSlot::kBytes, NearSlot::kBytes + 1, UINT32_MAX, INT64_MAX, UINT64_MAX};
  const auto value = [&] {
    return random() % 2 == 0 ? random() : kValues[random() % std::size(kValues)];
  };
  for (NearDirection& to : memory.to) {
    if (random() % 4 == 0) to.lease = static_cast<std::int64_t>(value());
    if (random() % 4 == 0) to.lease = 2 * kSecond;
    if (random() % 8 == 0) to.joined = static_cast<std::uint32_t>(value());
    for (int i = 0; i < 20; ++i) {
      NearSlot& slot = to.slots[random() % NearParts::kSlots];
      slot.size = value();
      for (int word = 0; word < 4; ++word) {
        const std::uint64_t bytes = value();
        std::memcpy(slot.bytes.data() + random() % (NearSlot::kBytes - 8), &bytes, 8);
      }
      if (random() % 2 == 0) {  // as far as the session
        const std::uint8_t header[] = {0x15, 1, 0, 0, 1, 0, 0, 0};
        std::memcpy(slot.bytes.data(), header, sizeof header);
        slot.bytes[16] = slot.bytes[17] = 0;
      }
      slot.state = random() % 2 == 0 ? 0 : value();
    }
  }
}

// Whatever a partner writes: no byte outside is touched, and nothing of it is believed.
TEST_F(NearLinksTest, AHostilePartnerLeadsNowhere) {
  const Partner partner(fd_);
  std::mt19937_64 random(1);
  std::uint64_t taken = 0, sent = 0;
  for (int round = 0; round < 20'000; ++round) {
    Spoil(*partner, random);
    for (const NearLinks::Taken& datagram : links_.Pull()) {
      ASSERT_LE(datagram.bytes.size(), NearSlot::kBytes);
      ++taken;
      node_.endpoint.OnDatagram(datagram.from, datagram.bytes, false, kSecond);
    }
    sent += Send(std::vector<std::uint8_t>(random() % 1600, 3), 2 * kSecond - 1) > 0 ? 1 : 0;
    links_.Poll(kSecond + round, true);
    if (random() % 4 == 0) links_.Rest();
    (void)links_.HasAny();
    links_.DropStale(node_.endpoint);
    ASSERT_FALSE(links_.empty());
  }
  const Counters& c = node_.endpoint.counters();
  std::printf("taken %lu, sent %lu: malformed %lu, without a session %lu\n", taken, sent,
              c.malformed, c.no_session);
  EXPECT_GT(taken, 1000u);
  EXPECT_GT(sent, 100u);
  EXPECT_EQ(c.datagrams_in, taken);
  EXPECT_EQ(c.malformed + c.foreign + c.bad_tag + c.no_session + c.bad_cookie, taken);
  EXPECT_EQ(c.messages_in + c.sessions, 0u);
}

#if !defined(__SANITIZE_THREAD__)
// The same while it goes on writing, in the middle of ours.
TEST_F(NearLinksTest, AHostilePartnerThatNeverStopsLeadsNowhere) {
  const Partner partner(fd_);
  std::atomic<bool> stop{false};
  std::thread hostile([&] {
    std::mt19937_64 random(2);
    while (!stop) Spoil(*partner, random);
  });
  std::uint64_t taken = 0;
  for (int round = 0; round < 20'000; ++round) {
    for (const NearLinks::Taken& datagram : links_.Pull()) {
      ASSERT_LE(datagram.bytes.size(), NearSlot::kBytes);
      ++taken;
      node_.endpoint.OnDatagram(datagram.from, datagram.bytes, false, kSecond);
    }
    (void)Send(std::vector<std::uint8_t>(100, 3), 2 * kSecond - 1);
    links_.Poll(kSecond + round, true);
    if (round % 4 == 0) links_.Rest();
  }
  stop = true;
  hostile.join();
  EXPECT_EQ(node_.endpoint.counters().datagrams_in, taken);
  EXPECT_EQ(node_.endpoint.counters().messages_in + node_.endpoint.counters().sessions, 0u);
}
#endif

// Two threads as two programs: each datagram is whole, in order, and here or not accepted there.
TEST_F(NearLinksTest, EachDatagramIsReadWholeOrSentByUdp) {
  constexpr std::uint32_t kCount = 200'000;
  Node other(1);
  NearLinks theirs;
  ASSERT_FALSE(theirs.Join(1, 0, kOwn, other.endpoint.peer_session(0), fd_));
  std::atomic<std::uint32_t> by_udp{0}, done{0}, sent{0}, read{0};
  std::thread sender([&] {
    std::mt19937_64 random(3);
    const Nanos limit = Wire::Now() + 60 * kSecond;
    // Who has no processor does not look, and nobody writes to who does not look.
    for (std::uint32_t i = 0; i < kCount || (read == 0 && Wire::Now() < limit); ++i) {
      std::vector<std::uint8_t> datagram(8 + random() % 200, static_cast<std::uint8_t>(i));
      std::memcpy(datagram.data(), &i, sizeof i);
      if (Send(datagram, Wire::Now()) == 0) ++by_udp;
      ++sent;
    }
    done = 1;
  });
  std::uint32_t next = 0, wrong = 0;
  const auto look = [&] {
    for (const NearLinks::Taken& datagram : theirs.Pull()) {
      std::uint32_t number;
      std::memcpy(&number, datagram.bytes.data(), sizeof number);
      for (const std::uint8_t byte : datagram.bytes.subspan(sizeof number)) {
        wrong += byte != static_cast<std::uint8_t>(number) ? 1 : 0;
      }
      wrong += number < next ? 1 : 0;
      next = number + 1;
      ++read;
    }
  };
  std::mt19937_64 random(4);
  while (done == 0 || theirs.HasAny()) {
    theirs.Poll(Wire::Now(), true);
    look();
    if (random() % 1024 != 0) continue;
    theirs.Rest();
    while (theirs.HasAny()) look();
  }
  sender.join();
  look();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(read + by_udp, sent);
  EXPECT_GT(read, 0u);
  std::printf("%u of %u through memory\n", read.load(), sent.load());
}

}  // namespace
}  // namespace sekisho::pm
