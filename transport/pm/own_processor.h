// SPDX-License-Identifier: Apache-2.0
// Whether a program has had a processor for itself of late.  Pure.
// docs/protocol/9-pm.md, "Inside a host".
#pragma once

#include <cstdint>

namespace sekisho::pm {

class OwnProcessor {
 public:
  static constexpr std::uint32_t kLook = 1024;  // calls
  static constexpr std::uint32_t kSeldom = 64;  // not more often than once in so many

  // It slept, or others ran while it yielded.
  void NoteGivenAway() { ++given_away_; }
  // It looked so often whether something is there.  Who computes says nothing: others may run.
  void NoteCalls(std::uint32_t calls) {
    calls_ += calls;
    if (calls_ < kLook) return;
    is_alone_ = given_away_ * kSeldom < calls_;
    calls_ = given_away_ = 0;
  }
  bool is_alone() const { return is_alone_; }

 private:
  std::uint32_t calls_ = 0, given_away_ = 0;
  bool is_alone_ = false;
};

}  // namespace sekisho::pm
