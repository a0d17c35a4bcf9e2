// SPDX-License-Identifier: Apache-2.0
// How long one who waits looks again and again before it sleeps.  Pure.
// docs/operations/pm.md, "Waiting".
#pragma once

#include <algorithm>

#include "transport/pm/types.h"

namespace sekisho::pm {

class SpinHistory {
 public:
  static constexpr Nanos kLeast = kMicrosecond, kMost = 50 * kMicrosecond;
  static constexpr int kSharedLooks = 10;

  // A wait.  `is_shared`: others need this processor, and get it after few looks in vain.
  void Begin(Nanos now, bool is_shared) {
    begin_ = now;
    is_shared_ = is_shared;
    looks_left_ = kSharedLooks;
  }

  // What it waits for is not there yet.  `in_vain`: nor did anything else come.
  bool MayLookAgain(Nanos now, bool in_vain) {
    if (is_shared_ && in_vain && looks_left_ > 0) --looks_left_;
    return looks_left_ > 0 && now - begin_ < std::min(2 * pays_ + kLeast, kMost);
  }

  // It is there: looking for so long would have paid, if that is not too long.
  void Found(Nanos now) {
    const Nanos waited = now - begin_;
    pays_ = waited <= kMost ? std::max(waited, pays_ / 2) : pays_ / 2;
  }

 private:
  Nanos begin_ = 0;
  Nanos pays_ = 0;  // how long it was worth it of late
  bool is_shared_ = false;
  int looks_left_ = 0;
};

}  // namespace sekisho::pm
