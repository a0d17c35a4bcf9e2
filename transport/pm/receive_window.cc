// SPDX-License-Identifier: Apache-2.0
// Which packet numbers of one peer arrived.
#include "transport/pm/receive_window.h"

#include <algorithm>
#include <bit>

#include "transport/pm/memory.h"

namespace sekisho::pm {

ReceiveWindow::Verdict ReceiveWindow::Check(std::uint64_t number, const Bits& bits) const {
  if (number > largest_) return Verdict::kNew;
  if (number == 0 || largest_ - number >= kSize) return Verdict::kTooOld;
  const bool seen = !has_bits_ || (bits[number % kSize / 64] >> number % 64 & 1) != 0;
  return seen ? Verdict::kDuplicate : Verdict::kNew;
}

bool ReceiveWindow::Mark(std::uint64_t number, Bits& bits) {
  const bool in_order = number == largest_ + 1;
  if (!has_bits_) {
    if (in_order) {
      largest_ = number;
      return true;
    }
    bits.fill(~std::uint64_t{0});  // all that came so far
    Publish();
    has_bits_ = true;
    Publish();
  }
  if (number > largest_) {
    if (number - largest_ >= kSize) {
      bits.fill(0);
    } else {
      for (std::uint64_t clear = largest_ + 1; clear < number; ++clear) {
        bits[clear % kSize / 64] &= ~(1ull << clear % 64);
      }
    }
    largest_ = number;
  }
  bits[number % kSize / 64] |= 1ull << number % 64;
  return in_order;
}

void ReceiveWindow::SetFloor(std::uint64_t floor) { floor_ = std::max(floor_, floor); }

std::size_t ReceiveWindow::Ranges(std::span<NumberRange, kAckRangesMax> out,
                                  const Bits& bits) const {
  if (largest_ == 0) return 0;
  const std::uint64_t bottom =
      std::min(largest_, std::max(floor_, largest_ < kSize ? 1 : largest_ - kSize + 1));
  if (!has_bits_) {
    out[0] = {bottom, largest_};
    return 1;
  }
  std::size_t count = 0;
  std::uint64_t number = largest_;
  while (count < out.size()) {
    // Down over present numbers, a word at a time.
    NumberRange range{number, number};
    for (;;) {
      const unsigned bit = number % 64;
      const std::uint64_t word = bits[number % kSize / 64] << (63 - bit);
      const std::uint64_t run = std::min<std::uint64_t>(std::countl_one(word), bit + 1);
      if (run > number - bottom) {
        range.low = bottom;
        out[count++] = range;
        return count;
      }
      range.low = number - run + 1;
      number -= run;
      if (run < bit + 1) break;
    }
    out[count++] = range;
    // Down over missing numbers.
    for (;;) {
      const unsigned bit = number % 64;
      const std::uint64_t word = bits[number % kSize / 64] << (63 - bit);
      const std::uint64_t run = std::min<std::uint64_t>(std::countl_zero(word), bit + 1);
      if (run > number - bottom) return count;
      number -= run;
      if (run < bit + 1) break;
    }
  }
  return count;
}

}  // namespace sekisho::pm
