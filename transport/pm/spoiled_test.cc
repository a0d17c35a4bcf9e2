// SPDX-License-Identifier: Apache-2.0
// A hostile program writes what it likes into the memory that it shares with its keeper: the keeper
// touches no byte outside and does not crash.  Pages that nobody may touch lie around the memory.
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/guarded_node.h"

namespace sekisho::pm {
namespace {

sigjmp_buf leave;

void Leave() { siglongjmp(leave, 1); }
void OnProcessorTime(int) { siglongjmp(leave, 2); }

void Spoil(MutableBytes bytes, std::mt19937_64& random) {
  constexpr std::uint64_t kValues[] = {0,        1,          7,         4095,      4096,
                                       1u << 30, UINT32_MAX, INT64_MAX, UINT64_MAX};
  const std::uint64_t value = random() % 2 == 0 ? random() : kValues[random() % std::size(kValues)];
  const std::size_t size = std::size_t{1} << random() % 4;
  // Most of the memory are records that are never used.
  const std::size_t range =
      random() % 4 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 9000);
  const std::size_t at = random() % (range - 8) / size * size;
  std::memcpy(bytes.data() + at, &value, size);
}

class Pair {
 public:
  explicit Pair(std::uint64_t seed) : random_(seed), a_(SmallConfig(0)), b_(SmallConfig(1)) {
    EXPECT_FALSE(a_.endpoint.SetAddress(1, Address{{}, 1}));
    EXPECT_FALSE(b_.endpoint.SetAddress(0, Address{{}, 2}));
  }

  Node& victim() { return a_; }
  std::mt19937_64& random() { return random_; }

  void Step() {
    now_ += static_cast<Nanos>(random_() % (random_() % 16 == 0 ? 20'000'000 : 200'000));
    for (Node* node : {&a_, &b_}) {
      const NodeId to = node == &a_ ? 1 : 0;
      std::vector<std::uint8_t> text(random_() % 1500);
      (void)node->endpoint.Send(to, static_cast<ChannelId>(random_() % 2), text, now_);
      if (node->endpoint.NextDeadline() <= now_) node->endpoint.OnTimer(now_);
      Message message;
      for (int i = 0; i < 4 && node->endpoint.Receive(message); ++i) {
        sum_ += message.bytes.first.size() + message.bytes.second.size();
        for (const std::uint8_t byte : message.bytes.second) sum_ += byte;
        for (const std::uint8_t byte : message.bytes.first) sum_ += byte;
        (void)node->endpoint.Release(message.source, message.channel, now_);
      }
    }
    Carry(a_, b_, {{}, 2});
    Carry(b_, a_, {{}, 1});
  }

 private:
  void Carry(Node& from, Node& to, const Address& source) {
    Address ignored;
    for (int i = 0; i < 100; ++i) {
      const MutableBytes room = room_.bytes();
      const std::size_t size = from.endpoint.NextDatagram(now_, room, ignored);
      if (size == 0) return;
      ASSERT_LE(size, room.size());
      if (random_() % 8 == 0) continue;  // lost
      to.endpoint.OnDatagram(source, room.first(size), false, now_);
    }
  }

  std::mt19937_64 random_;
  Node a_, b_;
  Guarded room_{1984};
  Nanos now_ = kSecond;
  std::size_t sum_ = 0;
};

class SpoiledMemory : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP()
        << "numbers that overflow and races are what this is about; the guards see the rest";
#endif
    SetSpoiledHandler(Leave);
    signal(SIGVTALRM, OnProcessorTime);
  }
  void TearDown() override {
    SetSpoiledHandler(nullptr);
    signal(SIGVTALRM, SIG_DFL);
  }

  // As the keeper: whoever turns for a tenth of a second has lost his way.
  template <typename Body>
  void Guard(Body body) {
    const itimerval limit = {{0, 0}, {0, 100'000}}, off = {};
    const int how = sigsetjmp(leave, 1);
    if (how == 0) {
      setitimer(ITIMER_VIRTUAL, &limit, nullptr);
      body();
    }
    setitimer(ITIMER_VIRTUAL, &off, nullptr);
    (how == 1 ? noticed_ : how == 2 ? endless_ : survived_) += 1;
  }

  int noticed_ = 0, endless_ = 0, survived_ = 0;
};

TEST_F(SpoiledMemory, NeverLeadsOutside) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto pair = std::make_unique<Pair>(seed);
    for (int i = 0; i < 30; ++i) pair->Step();
    Guard([&] {
      for (int i = 0; i < 60; ++i) {
        Spoil(pair->victim().area.bytes(), pair->random());
        pair->Step();
      }
    });
  }
  std::printf("noticed %d, endless %d, survived %d\n", noticed_, endless_, survived_);
  EXPECT_GT(noticed_, 10);
  EXPECT_LT(endless_, 40);
}

TEST_F(SpoiledMemory, NeverLeadsOutsideWhileItIsRebuilt) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const auto pair = std::make_unique<Pair>(seed);
    for (int i = 0; i < 30; ++i) pair->Step();
    Guard([&] {
      for (int i = 0; i < 10; ++i) Spoil(pair->victim().area.bytes(), pair->random());
      Endpoint fresh;
      Node& victim = pair->victim();
      ASSERT_FALSE(
          fresh.Init(SmallConfig(0), victim.spare.bytes(), victim.rings.bytes(), nullptr, 1));
      fresh.Rebuild(victim.endpoint);
      ASSERT_FALSE(
          victim.endpoint.Attach(SmallConfig(0), victim.spare.bytes(), victim.rings.bytes()));
      for (int i = 0; i < 20; ++i) pair->Step();
    });
  }
  std::printf("noticed %d, endless %d, survived %d\n", noticed_, endless_, survived_);
  EXPECT_GT(survived_, 10);
}

TEST_F(SpoiledMemory, NeverLeadsOutsideWhileSomeoneGoesOnWriting) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const auto pair = std::make_unique<Pair>(seed);
    for (int i = 0; i < 30; ++i) pair->Step();
    std::atomic<bool> stop{false};
    std::thread hostile([&] {
      std::mt19937_64 random(seed * 7);
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      // The rings are read twice for a packet, for its tag and for itself.
      while (!stop) {
        Spoil((random() % 4 == 0 ? pair->victim().rings : pair->victim().area).bytes(), random);
      }
    });
    Guard([&] {
      for (int i = 0; i < 60; ++i) pair->Step();
    });
    stop = true;
    hostile.join();
  }
  std::printf("noticed %d, endless %d, survived %d\n", noticed_, endless_, survived_);
}

}  // namespace
}  // namespace sekisho::pm
