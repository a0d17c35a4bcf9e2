// SPDX-License-Identifier: Apache-2.0
// The owner word in every interleaving of a program and a keeper, with one of them killed or the
// program stopped and continued between any two steps.  The code under test is hand_over.h itself.
#include "transport/pm/hand_over.h"

#include <cstdio>
#include <string>

#include <gtest/gtest.h>

#include "transport/pm/interleavings.h"

namespace sekisho::pm {
namespace {

template <typename T>
class SteppingAtomic {
 public:
  T load() const {
    Explorer::Step();
    Explorer::Observe(value_);
    return value_;
  }
  void store(T value) {
    Explorer::Step();
    value_ = value;
  }
  bool compare_exchange_strong(T& expected, T desired) {
    Explorer::Step();
    Explorer::Observe(value_);
    if (value_ == expected) {
      value_ = desired;
      return true;
    }
    expected = value_;
    return false;
  }
  T peek() const { return value_; }

 private:
  T value_{};
};

using Atomic64 = SteppingAtomic<std::uint64_t>;
using ModelHandOver = HandOver<Atomic64>;

enum Thread : std::size_t { kProgramThread, kKeeperThread };
constexpr std::uint64_t kNotWaiting = UINT64_MAX;

enum Fault : std::size_t { kStopProgram, kContinueProgram, kKillProgram, kKillKeeper, kFaults };

struct Bounds {
  int sends = 1;
  int turns = 1;
  int stops = 0, program_kills = 0, keeper_kills = 0;
  bool broken_fence = false, broken_spare = false, broken_retry = false,
       broken_look = false;  // to see the test fail
};

// What a stream is: the program adds to `written`, whoever drives adds datagrams to `received`, and
// only what is in `received` may be acknowledged.
struct Area {
  int written = 0;
  int received = 0;  // a bit for each datagram
  // A run that is moved between two records: always in one of them, unless they are looked at while
  // it is moved.
  int records[2] = {1, 0};
};

class Model final : public Explorer::Model {
 public:
  // `wrong` gets the first thing that went wrong.
  Model(Explorer& explorer, const Bounds& bounds, std::string& wrong)
      : explorer_(explorer), bounds_(bounds), wrong_(wrong) {}

  std::size_t threads() const override { return 2; }
  std::size_t faults() const override { return kFaults; }

  void Run(std::size_t thread) override {
    if (thread == kProgramThread) {
      Program();
    } else {
      KeeperLife();
    }
  }

  bool Enabled(std::size_t thread) const override {
    if (waits_[thread] == Seen(thread)) return false;
    return thread == kKeeperThread || (program_alive_ && !stopped_);
  }

  bool FaultPossible(std::size_t fault) const override {
    const bool program_runs = program_alive_ && !explorer_.IsDone(kProgramThread);
    switch (fault) {
      case kStopProgram:
        return bounds_.stops > 0 && program_runs && !stopped_;
      case kContinueProgram:
        return program_alive_ && stopped_;
      case kKillProgram:
        return bounds_.program_kills > 0 && program_runs;
      default:
        return bounds_.keeper_kills > 0 && !explorer_.IsDone(kKeeperThread);
    }
  }

  void Happen(std::size_t fault) override {
    ++happened_;
    switch (fault) {
      case kStopProgram:
        --bounds_.stops;
        stopped_ = true;
        break;
      case kContinueProgram:
        stopped_ = false;
        break;
      case kKillProgram:
        --bounds_.program_kills;
        program_alive_ = false;
        break;
      default:  // another takes its place
        --bounds_.keeper_kills;
        in_area_[kKeeperThread] = -1;
        predecessor_ = true;
        waits_[kKeeperThread] = kNotWaiting;
        explorer_.Restart(kKeeperThread);
    }
  }

  std::uint64_t Digest() const override {
    std::uint64_t digest = 0;
    for (const Area& area : areas_) {
      Explorer::Mix(digest, static_cast<std::uint64_t>(area.written << 20 | area.records[0] << 19 |
                                                       area.records[1] << 18 | area.received));
    }
    for (const std::uint64_t value :
         {word_.peek(), std::uint64_t{program_alive_}, std::uint64_t{stopped_},
          std::uint64_t{predecessor_}, std::uint64_t{waits_[0] == Seen(0)},
          std::uint64_t{waits_[1] == Seen(1)}, static_cast<std::uint64_t>(acknowledged_),
          static_cast<std::uint64_t>(accepted_), static_cast<std::uint64_t>(in_area_[0] + 1),
          static_cast<std::uint64_t>(in_area_[1] + 1), static_cast<std::uint64_t>(bounds_.stops),
          static_cast<std::uint64_t>(bounds_.program_kills),
          static_cast<std::uint64_t>(bounds_.keeper_kills)}) {
      Explorer::Mix(digest, value);
    }
    return digest;
  }

  void Finish() override {
    const OwnerWord word = OwnerWord::Of(word_.peek());
    const Area& state = areas_[word.area];
    // Whoever is left can go on: nobody waits for ever.
    if (program_alive_) {
      Check(explorer_.IsDone(kProgramThread), "the program is stuck");
      Check(state.written == bounds_.sends, "lost or sent twice");
    }
    Check(explorer_.IsDone(kKeeperThread), "the keeper is stuck");
    Check((acknowledged_ & ~state.received) == 0, "acknowledged and lost");
    Check(accepted_ <= state.written, "accepted and lost");
    Check(state.written <= accepted_ + (program_alive_ ? 0 : 1), "sent twice");
  }

 private:
  // Two in one area would be the end of it.
  void Enter(std::size_t thread, std::uint32_t area) {
    const std::size_t other = 1 - thread;
    const bool other_lives = other == kProgramThread ? program_alive_ : true;
    Check(!other_lives || in_area_[other] != static_cast<int>(area), "two in one area");
    in_area_[thread] = static_cast<int>(area);
  }
  void Leave(std::size_t thread) { in_area_[thread] = -1; }

  template <typename T>
  static T See(T value) {
    Explorer::Observe(static_cast<std::uint64_t>(value));
    return value;
  }

  void Check(bool holds, const char* what) {
    if (!holds && wrong_.empty()) wrong_ = what;
  }

  // What others did so far.  One that failed goes on when this is more than before it tried.
  std::uint64_t Seen(std::size_t thread) const { return explorer_.steps(1 - thread) + happened_; }
  void WaitSince(std::size_t thread, std::uint64_t seen) {
    waits_[thread] = seen;
    Explorer::Step();
    waits_[thread] = kNotWaiting;
  }

  void Change(int& value, int bits) {
    Explorer::Step();
    value |= bits;
    Explorer::Observe(static_cast<std::uint64_t>(value));
  }

  // As Context::Send and Wire::Flush.
  void Program() {
    ModelHandOver word(word_, Side::kProgram);
    int attempt = 0;
    for (int i = 0; i < bounds_.sends; ++i) {
      for (bool accepted = false; !accepted;) {
        OwnerWord mine = TakeAsProgram(word);
        Area& area = areas_[mine.area];
        Enter(kProgramThread, mine.area);
        const int before = See(area.written);
        Change(area.received, 1 << attempt++);  // a datagram came, too
        // Two if another was stopped in the middle of this: the second is as good.
        const int at = See(area.records[1]);
        Explorer::Step();
        area.records[1 - at] = 1;
        Explorer::Step();
        area.records[at] = 0;
        Explorer::Step();
        ++area.written;
        const int to_acknowledge = See(area.received);
        if (bounds_.broken_fence || word.Holds(mine)) acknowledged_ |= to_acknowledge;
        if (word.GiveBack(mine)) {
          Leave(kProgramThread);
          accepted = true;
        } else {
          Leave(kProgramThread);
          OwnerWord again = TakeAsProgram(word);
          Enter(kProgramThread, again.area);
          accepted = !bounds_.broken_retry && See(areas_[again.area].written) != before;
          const bool given = word.GiveBack(again);
          (void)given;
          Leave(kProgramThread);
        }
      }
      accepted_ = i + 1;
    }
  }

  OwnerWord TakeAsProgram(ModelHandOver& word) {
    OwnerWord mine;
    for (;;) {
      const std::uint64_t seen = Seen(kProgramThread), memory = Explorer::Memory();
      if (word.TryTake(mine)) return mine;
      WaitSince(kProgramThread, seen);
      Explorer::Forget(memory);
    }
  }

  void KeeperLife() {
    ModelHandOver word(word_, Side::kKeeper);
    for (int i = 0; i < bounds_.turns; ++i) {
      OwnerWord mine;
      for (;;) {
        const std::uint64_t seen = Seen(kKeeperThread), memory = Explorer::Memory();
        if (Acquire(word, mine)) break;
        WaitSince(kKeeperThread, seen);
        Explorer::Forget(memory);
      }
      Area& area = areas_[mine.area];
      Enter(kKeeperThread, mine.area);
      Change(area.received, 256 << (4 * bounds_.keeper_kills + i));
      if (word.Holds(mine)) acknowledged_ |= area.received;
      const bool given = word.GiveBack(mine);
      Check(given, "taken from a living keeper");
      Leave(kKeeperThread);
    }
  }

  // As Keeper::Acquire.
  bool Acquire(ModelHandOver& word, OwnerWord& mine) {
    if (word.TryTake(mine)) {
      predecessor_ = false;
      return true;
    }
    const OwnerWord from = word.seen();
    if (from.owner == Side::kNone) return false;
    if (from.owner == Side::kKeeper) {
      Check(predecessor_, "held by a keeper that never was");
      return Seize(word, from, false, mine);
    }
    Explorer::Step();
    See(program_alive_);
    See(stopped_);
    if (!program_alive_) return Seize(word, from, false, mine);
    return stopped_ && Seize(word, from, true, mine);
  }

  // Whether the program is stopped, and how often it was continued.
  int SeeProgram() {
    Explorer::Step();
    return See(program_alive_ && stopped_ ? bounds_.stops : -1);
  }

  bool Seize(ModelHandOver& word, const OwnerWord& from, bool stopped, OwnerWord& mine) {
    if (!word.Claim(from, stopped, mine)) return false;
    predecessor_ = false;
    std::uint32_t spare;
    for (;;) {
      const std::uint64_t seen = Seen(kKeeperThread), memory = Explorer::Memory();
      bool alone = word.IsAlone(mine);
      Explorer::Step();
      alone = See(!program_alive_) || alone;
      const int before = SeeProgram();
      spare = bounds_.broken_spare ? 1 - mine.area % 2 : word.SpareArea(mine);
      Enter(kKeeperThread, spare);
      Area built;
      Explorer::Step();
      built.received = See(areas_[mine.area].received);
      Explorer::Step();
      built.written = See(areas_[mine.area].written);
      Explorer::Step();
      built.records[1] = See(areas_[mine.area].records[1]);
      Explorer::Step();
      built.records[0] = See(areas_[mine.area].records[0]);
      areas_[spare] = built;
      Leave(kKeeperThread);
      if (alone || bounds_.broken_look) break;
      if (before >= 0 && SeeProgram() == before) break;
      WaitSince(kKeeperThread, seen);
      Explorer::Forget(memory);
    }
    Check(areas_[spare].records[0] + areas_[spare].records[1] > 0, "a run of bytes is lost");
    word.Move(mine, spare);
    return true;
  }

  Explorer& explorer_;
  Bounds bounds_;
  std::string& wrong_;
  Atomic64 word_;
  Area areas_[kAreas];
  int in_area_[2] = {-1, -1};
  int acknowledged_ = 0, accepted_ = 0;
  bool program_alive_ = true, stopped_ = false, predecessor_ = false;
  std::uint64_t happened_ = 0;
  std::uint64_t waits_[2] = {kNotWaiting, kNotWaiting};
};

class HandOverTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "jumps between stacks, which sanitizers do not follow";
#endif
  }
};

std::string Explore(const Bounds& bounds) {
  Explorer explorer;
  std::string wrong;
  const std::size_t states = explorer.Explore([&]() -> std::unique_ptr<Explorer::Model> {
    return std::make_unique<Model>(explorer, bounds, wrong);
  });
  std::printf("%zu states\n", states);
  return wrong;
}

TEST_F(HandOverTest, OneDrivesAtATime) { EXPECT_EQ(Explore({.sends = 3, .turns = 3}), ""); }

TEST_F(HandOverTest, AProgramThatIsKilledAnywhereLosesNothing) {
  EXPECT_EQ(Explore({.sends = 2, .turns = 2, .program_kills = 1}), "");
}

TEST_F(HandOverTest, AProgramThatIsStoppedAnywhereIsTakenOverAndGoesOn) {
  EXPECT_EQ(Explore({.sends = 2, .turns = 1, .stops = 1}), "");
  EXPECT_EQ(Explore({.sends = 1, .turns = 1, .stops = 2}), "");
}

TEST_F(HandOverTest, AKeeperThatIsKilledAnywhereIsReplaced) {
  EXPECT_EQ(Explore({.sends = 2, .turns = 2, .keeper_kills = 1}), "");
  EXPECT_EQ(Explore({.sends = 1, .turns = 1, .keeper_kills = 2}), "");
}

TEST_F(HandOverTest, OneOfEverything) {
  EXPECT_EQ(Explore({.sends = 1, .turns = 1, .stops = 1, .program_kills = 1, .keeper_kills = 1}),
            "");
}

TEST_F(HandOverTest, WhatIsLeftOutIsMissed) {
  EXPECT_NE(Explore({.turns = 1, .stops = 1, .broken_fence = true}), "");
  EXPECT_NE(Explore({.turns = 1, .stops = 1, .keeper_kills = 1, .broken_spare = true}), "");
  EXPECT_NE(Explore({.turns = 1, .stops = 1, .broken_retry = true}), "");
  EXPECT_NE(Explore({.turns = 1, .stops = 1, .broken_look = true}), "");
}

}  // namespace
}  // namespace sekisho::pm
