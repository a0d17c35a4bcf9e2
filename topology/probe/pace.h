// SPDX-License-Identifier: Apache-2.0
// How far a host of a broadcast may be ahead of the one after it.  Nothing is won by being far
// ahead, and much lost: what comes in as fast as the link carries fills its queue, the
// acknowledgements of what goes out wait there, and the next host gets a fraction of what it could.
// Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace sekisho::topology {

class Pace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The next host has been given all before `offset`.
  void Give(uint64_t offset, Time now) {
    if (offset <= given_) {
      return;
    }
    given_ = offset;
    last_ = now;
    if (now - since_ >= kWindow) {
      recent_ = given_ - given_then_;
      given_then_ = given_;
      since_ = now;
    }
  }

  // Bytes that went in the last whole quarter of a second.
  uint64_t recent() const { return recent_; }

  // Whether to wait with more.  Not for somebody who takes nothing: that one may be dead.
  bool IsFarAhead(uint64_t have, Time now) const {
    return given_ > 0 && now - last_ < kPatience && have > given_ + std::max(kLeast, 2 * recent_);
  }

 private:
  static constexpr std::chrono::milliseconds kWindow{250};
  static constexpr std::chrono::seconds kPatience{1};
  static constexpr uint64_t kLeast = 64 * 1024;

  uint64_t given_ = 0;
  Time last_{};
  uint64_t recent_ = 0;  // in the last whole window
  uint64_t given_then_ = 0;
  Time since_{};
};

}  // namespace sekisho::topology
