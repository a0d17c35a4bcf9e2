// SPDX-License-Identifier: Apache-2.0
// A ring in every interleaving of its writer and a reader that polls, rests and polls again, on a
// machine that, as x86 does, keeps what is stored back from others for a while.  The code under
// test is near_ring.h itself.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/interleavings.h"
#include "transport/pm/near_ring.h"

namespace sekisho::pm {
namespace {

enum Thread : std::size_t { kWriter, kReader, kThreads };

struct Bounds {
  int datagrams = 2;
  int batch = 1;  // written before one Settle
  int rests = 1;  // of the reader
  int looks = 1;  // of it while it polls
  // To see the test fail.
  bool broken_order = false, broken_serial = false, broken_rest = false, broken_settle = false;
};

// Memory, and what each thread has stored that the other does not see yet.
class Machine {
 public:
  explicit Machine(const Bounds& bounds) : bounds_(bounds) { current = this; }

  static Machine* current;

  std::size_t New() {
    memory_.push_back(0);
    return memory_.size() - 1;
  }
  std::uint64_t Load(std::size_t word) const {
    const auto& own = stored_[Explorer::Running()];
    for (auto it = own.rbegin(); it != own.rend(); ++it) {
      if (it->word == word) return it->value;
    }
    return memory_[word];
  }
  void Store(std::size_t word, std::uint64_t value) {
    stored_[Explorer::Running()].push_back({word, value});
  }
  void StoreAll() {
    while (Holds(Explorer::Running())) Show(Explorer::Running());
  }
  bool Holds(std::size_t thread) const { return !stored_[thread].empty(); }
  void Show(std::size_t thread) {
    memory_[stored_[thread].front().word] = stored_[thread].front().value;
    stored_[thread].pop_front();
  }
  const Bounds& bounds() const { return bounds_; }
  void Digest(std::uint64_t& digest) const {
    for (const std::uint64_t value : memory_) Explorer::Mix(digest, value);
    for (const auto& stored : stored_) {
      Explorer::Mix(digest, stored.size());
      for (const auto& [word, value] : stored) Explorer::Mix(digest, word << 32 | value);
    }
  }

 private:
  struct Stored {
    std::size_t word;
    std::uint64_t value;
  };

  Bounds bounds_;
  std::vector<std::uint64_t> memory_;
  std::deque<Stored> stored_[kThreads];
};

Machine* Machine::current = nullptr;

template <typename T>
class SteppingWord {
 public:
  T load(std::memory_order = std::memory_order_seq_cst) const {
    Explorer::Step();
    const std::uint64_t value = Machine::current->Load(word_);
    Explorer::Observe(value);
    return static_cast<T>(value);
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    Explorer::Step();
    Machine& machine = *Machine::current;
    machine.Store(word_, static_cast<std::uint64_t>(value));
    if (order == std::memory_order_seq_cst && !machine.bounds().broken_order) machine.StoreAll();
  }
  bool compare_exchange_strong(T& expected, T desired) {
    Explorer::Step();
    Machine& machine = *Machine::current;
    machine.StoreAll();
    const auto value = static_cast<T>(machine.Load(word_));
    Explorer::Observe(static_cast<std::uint64_t>(value));
    const bool same =
        machine.bounds().broken_serial ? (value != 0) == (expected != 0) : value == expected;
    expected = value;
    if (!same) return false;
    machine.Store(word_, static_cast<std::uint64_t>(desired));
    machine.StoreAll();
    return true;
  }

 private:
  std::size_t word_ = Machine::current->New();
};

struct Slot {
  SteppingWord<std::uint64_t> state, begin, end;
};

struct Parts {
  using Slot = pm::Slot;
  using Lease = SteppingWord<std::int64_t>;
  static constexpr std::size_t kSlots = 2;
  static constexpr std::int64_t kLeaseMost = 10;
};

constexpr std::int64_t kNow = 1, kPolls = 2;

class Model final : public Explorer::Model {
 public:
  Model(const Bounds& bounds, std::string& wrong)
      : bounds_(bounds), wrong_(wrong), machine_(bounds) {}

  std::size_t threads() const override { return kThreads; }
  bool Enabled(std::size_t) const override { return true; }
  // The oldest store of a thread comes to be seen.
  std::size_t faults() const override { return kThreads; }
  bool FaultPossible(std::size_t fault) const override { return machine_.Holds(fault); }
  void Happen(std::size_t fault) override { machine_.Show(fault); }

  void Run(std::size_t thread) override { thread == kWriter ? Write() : Read(); }

  std::uint64_t Digest() const override {
    std::uint64_t digest = 0;
    machine_.Digest(digest);
    for (const auto* numbers : {&read_, &by_udp_}) {
      for (const int number : *numbers) Explorer::Mix(digest, static_cast<std::uint64_t>(number));
      Explorer::Mix(digest, numbers->size());
    }
    return digest;
  }

  void Finish() override {
    for (int number = 1; number <= bounds_.datagrams; ++number) {
      const auto times = std::count(read_.begin(), read_.end(), number) +
                         std::count(by_udp_.begin(), by_udp_.end(), number);
      Check(times > 0, "lost");
      Check(times < 2, "arrived twice");
    }
    Check(std::is_sorted(read_.begin(), read_.end()), "out of order");
  }

 private:
  void Check(bool holds, const char* what) {
    if (!holds && wrong_.empty()) wrong_ = what;
  }

  // As NearLinks::Send: what does not go this way goes by UDP, which wakes the reader.
  void Write() {
    NearWriter<Parts> writer(slots_, lease_);
    for (int next = 1; next <= bounds_.datagrams;) {
      const int end = std::min(next + bounds_.batch, bounds_.datagrams + 1);
      int written = next;
      if (writer.MayWrite(kNow)) {
        while (written < end && writer.Write([&](Slot& slot) {
          slot.begin.store(static_cast<std::uint64_t>(written), std::memory_order_relaxed);
          slot.end.store(static_cast<std::uint64_t>(written), std::memory_order_relaxed);
        })) {
          ++written;
        }
        const auto taken_back = static_cast<int>(writer.Settle(kNow));
        if (!bounds_.broken_settle) written -= taken_back;
      }
      for (next = written; next < end; ++next) by_udp_.push_back(next);
    }
  }

  // As Context::Wait; in the end it sleeps for good.
  void Read() {
    NearReader<Parts> reader(slots_);
    const auto look = [&] {
      std::uint64_t begin = 0, end = 0;
      if (!reader.Read([&](Slot& slot) {
            begin = slot.begin.load();
            end = slot.end.load();
          })) {
        return;
      }
      Check(begin == end, "torn");
      read_.push_back(static_cast<int>(begin));
    };
    for (int rest = 0; rest < bounds_.rests; ++rest) {
      lease_.store(kPolls, std::memory_order_relaxed);
      for (int i = 0; i < bounds_.looks; ++i) look();
      lease_.store(0);
      while (!bounds_.broken_rest && reader.HasAny()) look();
    }
  }

  const Bounds bounds_;
  std::string& wrong_;
  Machine machine_;
  Slot slots_[Parts::kSlots];
  Parts::Lease lease_;
  std::vector<int> read_, by_udp_;
};

std::string Explore(const Bounds& bounds) {
  Explorer explorer;
  std::string wrong;
  const std::size_t states = explorer.Explore(
      [&]() -> std::unique_ptr<Explorer::Model> { return std::make_unique<Model>(bounds, wrong); });
  std::printf("%zu states\n", states);
  return wrong;
}

class NearRing : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "jumps between stacks, which sanitizers do not follow";
#endif
  }
};

TEST_F(NearRing, EachDatagramIsReadOnceOrSentByUdp) {
  EXPECT_EQ(Explore({.datagrams = 2}), "");
  EXPECT_EQ(Explore({.datagrams = 3, .looks = 2}), "") << "more than there are slots";
}

TEST_F(NearRing, AlsoIfManyAreWrittenBeforeTheWriterLooksAgain) {
  EXPECT_EQ(Explore({.datagrams = 3, .batch = 3}), "");
  EXPECT_EQ(Explore({.datagrams = 3, .batch = 2, .looks = 2}), "");
}

TEST_F(NearRing, AlsoIfTheReaderPollsAgain) {
  EXPECT_EQ(Explore({.datagrams = 2, .rests = 2}), "");
  EXPECT_EQ(Explore({.datagrams = 3, .batch = 2, .rests = 2}), "");
  EXPECT_EQ(Explore({.datagrams = 4, .batch = 2, .rests = 3, .looks = 2}), "");
}

TEST_F(NearRing, WhatIsLeftOutIsMissed) {
  EXPECT_EQ(Explore({.broken_order = true}), "lost");
  EXPECT_EQ(Explore({.broken_rest = true}), "lost");
  EXPECT_EQ(Explore({.broken_settle = true}), "lost");
  EXPECT_NE(Explore({.rests = 2, .broken_serial = true}), "");
}

}  // namespace
}  // namespace sekisho::pm
