// SPDX-License-Identifier: Apache-2.0
// Who drives a context: one word with an owner.  docs/protocol/9-pm.md, "Two drivers".
// Pure: the word is a template parameter, so that hand_over_test.cc runs this very code through
// every interleaving.
#pragma once

#include <cstdint>

namespace sekisho::pm {

enum class Side : std::uint8_t { kNone = 0, kProgram = 1, kKeeper = 2 };

inline constexpr std::uint32_t kAreas = 3;

// Bits 0-1 the owner, 2-3 the area that holds the state, 4-63 a number that grows with every
// taking.
struct OwnerWord {
  Side owner = Side::kNone;
  std::uint32_t area = 0;
  std::uint64_t epoch = 0;

  static OwnerWord Of(std::uint64_t bits) {
    return {static_cast<Side>(bits & 3), static_cast<std::uint32_t>(bits >> 2 & 3), bits >> 4};
  }
  std::uint64_t bits() const {
    return static_cast<std::uint64_t>(owner) | static_cast<std::uint64_t>(area) << 2 | epoch << 4;
  }
};

// `Atomic` has load, store and compare_exchange_strong, all sequentially consistent.
template <typename Atomic32, typename Atomic64>
class HandOver {
 public:
  HandOver(Atomic64& word, Atomic32& zombie, Side side)
      : word_(word), zombie_(zombie), side_(side) {}

  OwnerWord seen() const { return OwnerWord::Of(word_.load()); }

  // Takes what nobody holds.
  bool TryTake(OwnerWord& mine) {
    std::uint64_t bits = word_.load();
    mine = OwnerWord::Of(bits);
    if (mine.owner != Side::kNone) return false;
    mine.owner = side_;
    ++mine.epoch;
    return word_.compare_exchange_strong(bits, mine.bits());
  }

  // To be asked before anything that was decided under the word leaves the process.
  bool Holds(const OwnerWord& mine) const { return word_.load() == mine.bits(); }

  // False: it was taken away while we were stopped.  What we did to the state since then counts for
  // nothing, and from now on we touch that area no more.
  bool GiveBack(const OwnerWord& mine) {
    std::uint64_t bits = mine.bits();
    if (word_.compare_exchange_strong(bits, OwnerWord{Side::kNone, mine.area, mine.epoch}.bits())) {
      return true;
    }
    zombie_.store(0);
    return false;
  }

  // An area that neither holds the state nor is in the hands of a stopped process.
  std::uint32_t SpareArea(const OwnerWord& now) const {
    const std::uint32_t zombie = zombie_.load();
    for (std::uint32_t area = 0;; ++area) {
      if (area != now.area && area + 1 != zombie) return area;
    }
  }

  // Takes the word from an owner that is dead or (`stopped`) may go on later, after the state was
  // rebuilt in `area`, which SpareArea named.  False: someone else was faster.
  bool Seize(const OwnerWord& from, std::uint32_t area, bool stopped, OwnerWord& mine) {
    const std::uint32_t before = zombie_.load();
    if (stopped) zombie_.store(from.area + 1);
    mine = {side_, area, from.epoch + 1};
    std::uint64_t bits = from.bits();
    if (word_.compare_exchange_strong(bits, mine.bits())) return true;
    if (stopped) zombie_.store(before);
    return false;
  }

 private:
  Atomic64& word_;
  Atomic32& zombie_;
  Side side_;
};

}  // namespace sekisho::pm
