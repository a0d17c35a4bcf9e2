// SPDX-License-Identifier: Apache-2.0
// The pauses between one try and the next: each up to twice as long as the one before, up to a longest.  They are drawn
// from their upper half, so that all who have lost the same server do not come back to it at the same moment.  Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace sekisho {

class BackOff {
 public:
  using Pause = std::chrono::milliseconds;

  constexpr BackOff(Pause first, Pause longest) : first_(first), longest_(longest), most_(first) {}

  // The pause behind a try that failed, or that `has_been_up` for a while.  `chance` is any number, a new one each time.
  constexpr Pause After(bool has_been_up, uint64_t chance) {
    most_ = has_been_up ? first_ : std::min(most_ * 2, longest_);
    const int64_t half = most_.count() / 2;
    return Pause(half + static_cast<int64_t>(chance % static_cast<uint64_t>(half + 1)));
  }

  // No pause was longer yet than the first may be.
  [[nodiscard]] constexpr bool is_first() const { return most_ == first_; }

 private:
  Pause first_, longest_, most_;
};

}  // namespace sekisho
