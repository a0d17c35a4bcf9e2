// SPDX-License-Identifier: Apache-2.0
// Whether one who waits may sleep in the call that receives: one system call instead of poll and
// that one.  Nothing but a datagram ends it early, no timer and no bell, so it is for those who
// heard something soon each time of late.  Pure.  docs/operations/pm.md, "Waiting".
#pragma once

#include <algorithm>

#include "transport/pm/types.h"

namespace sekisho::pm {

class SocketSleep {
 public:
  static constexpr Nanos kLongest = 4 * kMillisecond;  // then the call ends (SO_RCVTIMEO)
  static constexpr Nanos kLeastPause = 10 * kMillisecond, kMostPause = kSecond;
  static constexpr Nanos kForgets = 10 * kSecond;  // without something that was late

  bool May(Nanos now) const { return came_soon_ && now >= not_before_; }

  // A sleep of whatever kind ended with a datagram.
  void NoteDatagram(Nanos slept) { came_soon_ = slept < kLongest; }

  // One in that call ended without.  What was due meanwhile was late: its datagrams get lost, or it
  // waits for its turn to send.
  void NoteNothing(Nanos now, bool was_due) {
    came_soon_ = false;
    if (!was_due) return;
    if (now > not_before_ + kForgets) pause_ = 0;
    pause_ = std::clamp(2 * pause_, kLeastPause, kMostPause);
    not_before_ = now + pause_;
  }

 private:
  bool came_soon_ = false;
  Nanos pause_ = 0;
  Nanos not_before_ = 0;
};

}  // namespace sekisho::pm
