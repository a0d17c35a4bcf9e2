// SPDX-License-Identifier: Apache-2.0
// Which packet numbers of one peer arrived: replay protection and the ranges of our
// acknowledgements.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "transport/pm/packet.h"

namespace sekisho::pm {

class ReceiveWindow {
 public:
  static constexpr std::uint64_t kSize = 2048;

  enum class Verdict { kNew, kDuplicate, kTooOld };

  Verdict Check(std::uint64_t number) const;

  // Only after Check said kNew.  True if the packet came in order, right behind the largest.
  bool Mark(std::uint64_t number);

  // The sender asks for nothing below this any more.
  void SetFloor(std::uint64_t floor);

  std::uint64_t largest() const { return largest_; }

  // Newest first, none below the floor; how many were written.
  std::size_t Ranges(std::span<NumberRange, kAckRangesMax> out) const;

 private:
  bool Has(std::uint64_t number) const {
    return (bits_[number % kSize / 64] >> number % 64 & 1) != 0;
  }

  std::array<std::uint64_t, kSize / 64> bits_{};
  std::uint64_t largest_ = 0;  // 0: nothing yet, numbers begin with 1
  std::uint64_t floor_ = 1;
};

}  // namespace sekisho::pm
