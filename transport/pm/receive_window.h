// SPDX-License-Identifier: Apache-2.0
// Which packet numbers of one peer arrived: replay protection and the ranges of our
// acknowledgements.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "transport/pm/packet.h"

namespace sekisho::pm {

// Its bits lie elsewhere.  As long as every number came behind the one before, nobody looks at
// them: a peer of whom nothing gets lost has no page of them.
class ReceiveWindow {
 public:
  static constexpr std::uint64_t kSize = 2048;
  using Bits = std::array<std::uint64_t, kSize / 64>;

  enum class Verdict { kNew, kDuplicate, kTooOld };

  Verdict Check(std::uint64_t number, const Bits& bits) const;

  // Only after Check said kNew.  True if the packet came in order, right behind the largest.
  bool Mark(std::uint64_t number, Bits& bits);

  // The sender asks for nothing below this any more.
  void SetFloor(std::uint64_t floor);

  std::uint64_t largest() const { return largest_; }
  bool has_bits() const { return has_bits_; }

  // Newest first, none below the floor; how many were written.
  std::size_t Ranges(std::span<NumberRange, kAckRangesMax> out, const Bits& bits) const;

 private:
  std::uint64_t largest_ = 0;  // 0: nothing yet, numbers begin with 1
  std::uint64_t floor_ = 1;
  bool has_bits_ = false;  // a number was left out once
};

}  // namespace sekisho::pm
