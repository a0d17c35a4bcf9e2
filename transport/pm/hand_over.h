// SPDX-License-Identifier: Apache-2.0
// Who drives a context: one word with an owner.  docs/protocol/9-pm.md, "Two drivers".
// Pure: the word is a template parameter, so that hand_over_test.cc runs this very code through
// every interleaving.
#pragma once

#include <cstdint>

namespace sekisho::pm {

enum class Side : std::uint8_t { kNone = 0, kProgram = 1, kKeeper = 2 };

inline constexpr std::uint32_t kAreas = 3;

// Bits 0-1 the owner, 2-3 the area that holds the state, 4-5 one more than the area in which a
// stopped program was left behind, 6-63 a number that grows with every taking.
struct OwnerWord {
  static constexpr std::uint64_t kZombieBits = 3 << 4;

  Side owner = Side::kNone;
  std::uint32_t area = 0;
  std::uint32_t zombie = 0;
  std::uint64_t epoch = 0;

  static OwnerWord Of(std::uint64_t bits) {
    return {static_cast<Side>(bits & 3), static_cast<std::uint32_t>(bits >> 2 & 3),
            static_cast<std::uint32_t>(bits >> 4 & 3), bits >> 6};
  }
  std::uint64_t bits() const {
    return static_cast<std::uint64_t>(owner) | static_cast<std::uint64_t>(area) << 2 |
           static_cast<std::uint64_t>(zombie) << 4 | epoch << 6;
  }
};

// What must not have changed as long as we hold it: all but the zombie, which the program clears.
inline bool SameHold(std::uint64_t a, std::uint64_t b) {
  return ((a ^ b) & ~OwnerWord::kZombieBits) == 0;
}

// `Atomic` has load and compare_exchange_strong, sequentially consistent.
template <typename Atomic>
class HandOver {
 public:
  HandOver(Atomic& word, Side side) : word_(word), side_(side) {}

  OwnerWord seen() const { return OwnerWord::Of(word_.load()); }

  // Takes what nobody holds.  A program that does so is in no area: it is no zombie any more.
  bool TryTake(OwnerWord& mine) {
    std::uint64_t bits = word_.load();
    mine = OwnerWord::Of(bits);
    if (mine.owner != Side::kNone) return false;
    mine.owner = side_;
    ++mine.epoch;
    if (side_ == Side::kProgram) mine.zombie = 0;
    return word_.compare_exchange_strong(bits, mine.bits());
  }

  // To be asked before anything that was decided under the word leaves the process.
  bool Holds(const OwnerWord& mine) const { return SameHold(word_.load(), mine.bits()); }

  // False: it was taken away while we were stopped.  What we did to the state since then counts for
  // nothing, and from now on we touch that area no more.
  bool GiveBack(const OwnerWord& mine) {
    for (std::uint64_t bits = word_.load();;) {
      OwnerWord next = OwnerWord::Of(bits);
      const bool held = SameHold(bits, mine.bits());
      if (held) {
        next.owner = Side::kNone;
      } else if (next.zombie == mine.area + 1) {
        next.zombie = 0;
      } else {
        return false;
      }
      if (word_.compare_exchange_strong(bits, next.bits())) return held;
    }
  }

  // Takes the word from an owner that is dead or (`stopped`) may go on later.  From here on nothing
  // that it does has an effect outside its area.  False: someone else was faster.
  bool Claim(const OwnerWord& from, bool stopped, OwnerWord& mine) {
    mine = {side_, from.area, stopped ? from.area + 1 : from.zombie, from.epoch + 1};
    std::uint64_t bits = from.bits();
    return word_.compare_exchange_strong(bits, mine.bits());
  }

  // After Claim: whether nobody but us is in the area with the state.  If not, what was built from
  // it counts only if the one in it was stopped all the while.
  bool IsAlone(const OwnerWord& mine) const { return seen().zombie != mine.area + 1; }

  // An area that neither holds the state nor has a zombie in it.
  std::uint32_t SpareArea(const OwnerWord& mine) const {
    const std::uint32_t zombie = seen().zombie;
    for (std::uint32_t area = 0;; ++area) {
      if (area != mine.area && area + 1 != zombie) return area;
    }
  }

  // The state is in another area from now on.
  void Move(OwnerWord& mine, std::uint32_t area) {
    for (std::uint64_t bits = word_.load();;) {
      const OwnerWord next = {side_, area, OwnerWord::Of(bits).zombie, mine.epoch + 1};
      if (!word_.compare_exchange_strong(bits, next.bits())) continue;
      mine = next;
      return;
    }
  }

 private:
  Atomic& word_;
  Side side_;
};

}  // namespace sekisho::pm
