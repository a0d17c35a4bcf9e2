// SPDX-License-Identifier: Apache-2.0
// A hostile program writes what it likes into the memory that it shares with its keeper: the keeper
// touches no byte outside and does not crash.  Pages that nobody may touch lie around the memory.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/endpoint.h"

namespace sekisho::pm {
namespace {

sigjmp_buf leave;

void Leave() { siglongjmp(leave, 1); }
void OnProcessorTime(int) { siglongjmp(leave, 2); }

// Memory that ends where a page ends that must not be touched, and begins behind one.
class Guarded {
 public:
  explicit Guarded(std::size_t size) {
    const std::size_t pages = (size + 4095) / 4096 * 4096;
    void* at = mmap(nullptr, pages + 2 * kGuard, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    base_ = static_cast<std::uint8_t*>(at);
    all_ = pages + 2 * kGuard;
    EXPECT_EQ(mprotect(base_ + kGuard, pages, PROT_READ | PROT_WRITE), 0);
    bytes_ = {base_ + kGuard + (pages - size) / 64 * 64, size};
  }
  ~Guarded() { munmap(base_, all_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  MutableBytes bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kGuard = 64 << 20;  // as far as a small index that is wrong may lead

  std::uint8_t* base_ = nullptr;
  std::size_t all_ = 0;
  MutableBytes bytes_;
};

struct Node {
  explicit Node(const Config& config)
      : area(Endpoint::AreaNeeded(config)),
        spare(Endpoint::AreaNeeded(config)),
        rings(Endpoint::RingsNeeded(config)) {
    EXPECT_FALSE(endpoint.Init(config, area.bytes(), rings.bytes(), nullptr, 1));
  }
  Guarded area, spare, rings;
  Endpoint endpoint;
};

Config SmallConfig(NodeId node) {
  Config config;
  config.node = node;
  config.channels = 2;
  config.send_ring = config.receive_ring = 4096;
  config.packets = 64;
  config.intervals = 16;
  config.key.fill(7);
  config.incarnation = node + 10u;
  return config;
}

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
    std::vector<std::uint8_t> room(2000);
    Address ignored;
    for (int i = 0; i < 100; ++i) {
      const std::size_t size = from.endpoint.NextDatagram(now_, room, ignored);
      if (size == 0) return;
      ASSERT_LE(size, room.size());
      if (random_() % 8 == 0) continue;  // lost
      to.endpoint.OnDatagram(source, MutableBytes(room).first(size), false, now_);
    }
  }

  std::mt19937_64 random_;
  Node a_, b_;
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
      while (!stop) Spoil(pair->victim().area.bytes(), random);
    });
    Guard([&] {
      for (int i = 0; i < 60; ++i) pair->Step();
    });
    stop = true;
    hostile.join();
  }
  std::printf("noticed %d, endless %d, survived %d\n", noticed_, endless_, survived_);
}

// Two nodes whose programs are stopped all the time and go on later, where they were.
class Rebuild : public testing::Test {
 protected:
  struct Note {
    std::uint32_t session;
    std::uint64_t end;
  };
  struct Side {
    explicit Side(NodeId id) : node(SmallConfig(id)), end(&node.endpoint) {}

    MutableBytes area(bool spare) const { return spare ? node.spare.bytes() : node.area.bytes(); }

    Node node;
    Endpoint* end;
    bool in_spare = false;
    std::uint32_t sent = 0, got = 0;
    std::vector<Note> notes;             // of what was given back
    std::vector<std::uint8_t> datagram;  // taken from the socket, but nobody has acted on it
    // The program that was left behind in the old area, in front of this datagram.
    Endpoint old;
    std::vector<Note> old_notes;
    int steps = 0;  // until it goes on; 0: there is none
  };

  static NodeId Other(std::size_t side) { return static_cast<NodeId>(1 - side); }
  static Address AddressOf(std::size_t side) { return {{}, static_cast<std::uint16_t>(2 - side)}; }

  static void GiveBack(Endpoint& end, std::size_t side, const std::vector<Note>& notes) {
    for (const Note& note : notes) end.GiveBack(Other(side), 0, note.session, note.end);
  }

  // The program goes on: acts on the notes, stores what it has taken, and learns that it lost the
  // word.
  static void GoOn(Side& at, std::size_t side, Nanos now) {
    GiveBack(at.old, side, at.old_notes);
    at.old.OnDatagram(AddressOf(side), at.datagram, false, now);
    at.datagram.clear();
  }

  static void Deliver(Side& at, std::size_t side, MutableBytes datagram, bool lost, Nanos now) {
    if (lost && at.steps == 0) at.datagram.assign(datagram.begin(), datagram.end());
    if (lost) return;
    GiveBack(*at.end, side, at.notes);
    at.notes.clear();
    at.end->OnDatagram(AddressOf(side), datagram, false, now);
  }

  static void Read(Side& at, std::size_t side, const Message& message, bool by_note, Nanos now) {
    std::vector<std::uint8_t> bytes(message.bytes.first.begin(), message.bytes.first.end());
    bytes.insert(bytes.end(), message.bytes.second.begin(), message.bytes.second.end());
    std::uint32_t number;
    std::memcpy(&number, bytes.data(), 4);
    ASSERT_EQ(number, at.got);
    ASSERT_EQ(std::count(bytes.begin() + 4, bytes.end(), static_cast<std::uint8_t>(number)),
              static_cast<std::ptrdiff_t>(bytes.size() - 4));
    ++at.got;
    if (by_note) {
      at.notes.push_back({at.end->peer_session(Other(side)), message.end});
    } else {
      ASSERT_FALSE(at.end->Release(message.source, message.channel, now));
    }
  }

  static void Seize(Side& at, std::size_t side, bool is_left_behind, Nanos now) {
    const Config config = SmallConfig(static_cast<NodeId>(side));
    ASSERT_FALSE(at.old.Attach(config, at.area(at.in_spare), at.node.rings.bytes()));
    at.in_spare = !at.in_spare;
    ASSERT_FALSE(at.end->Init(config, at.area(at.in_spare), at.node.rings.bytes(), nullptr, now));
    at.end->Rebuild(at.old);
    GiveBack(*at.end, side, at.notes);
    ASSERT_EQ(at.end->Check(), nullptr);
    at.old_notes = std::exchange(at.notes, {});
    if (is_left_behind) at.steps = 20;
  }
};

// What a rebuilt endpoint knows is enough.
TEST_F(Rebuild, AfterEveryStepLosesAndRepeatsNothing) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto sides = {std::make_unique<Side>(0), std::make_unique<Side>(1)};
    const auto at = [&sides](std::size_t side) -> Side& { return **(sides.begin() + side); };
    for (const std::size_t side : {0, 1}) {
      ASSERT_FALSE(at(side).end->SetAddress(Other(side), AddressOf(side)));
    }
    Nanos now = kSecond;
    int left_behind = 0;
    for (int step = 0; step < 4000; ++step) {
      now += static_cast<Nanos>(random() % 300'000);
      const std::size_t side = random() % 2;
      Side& own = at(side);
      Endpoint& end = *own.end;
      if (own.steps > 0 && --own.steps == 0) GoOn(own, side, now);
      GiveBack(end, side, own.notes);
      own.notes.clear();
      const bool runs = own.steps == 0;
      std::vector<std::uint8_t> text(4 + random() % 900, static_cast<std::uint8_t>(own.sent));
      std::memcpy(text.data(), &own.sent, 4);
      if (runs && step < 3000 && !end.Send(Other(side), 0, text, now)) ++own.sent;
      if (end.NextDeadline() <= now) end.OnTimer(now);
      Message message;
      while (runs && random() % 4 != 0 && end.Receive(message)) {
        Read(own, side, message, seed % 2 != 0, now);
        if (HasFatalFailure()) return;
      }
      std::vector<std::uint8_t> room(2000);
      Address ignored;
      while (const std::size_t size = end.NextDatagram(now, room, ignored)) {
        Deliver(at(1 - side), 1 - side, MutableBytes(room).first(size), random() % 8 == 0, now);
      }
      if (!runs || random() % 16 != 0) continue;
      const bool is_left_behind = !own.datagram.empty();
      left_behind += is_left_behind ? 1 : 0;
      Seize(own, side, is_left_behind, now);
      if (HasFatalFailure()) return;
    }
    for (const std::size_t side : {0, 1}) {
      EXPECT_GT(at(side).sent, 200u);
      EXPECT_EQ(at(1 - side).got, at(side).sent);
    }
    EXPECT_GT(left_behind, 20);
  }
}

}  // namespace
}  // namespace sekisho::pm
