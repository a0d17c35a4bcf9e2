// SPDX-License-Identifier: Apache-2.0
// Whether one who waits may sleep in the call that receives: one system call instead of poll and
// that one.  Nothing but a datagram ends it early, no timer and no bell, so it is for those who
// heard something soon each time of late, for whom nothing was late, and whom no other thread
// counts on.  Pure.  docs/operations/pm.md, "Waiting".
#pragma once

#include <algorithm>

#include "transport/pm/types.h"

namespace sekisho::pm {

class SocketSleep {
 public:
  // Then the call ends (SO_RCVTIMEO).  The kernel counts in ticks, of up to 10 ms, and adds one.
  static constexpr Nanos kLongest = 4 * kMillisecond;
  static constexpr Nanos kWithTicks = 20 * kMillisecond;
  static constexpr Nanos kLeastPause = 10 * kMillisecond, kMostPause = kSecond;
  static constexpr Nanos kForgets = 10 * kSecond;  // without something that was late
  static constexpr Nanos kAlone = 100 * kMillisecond;

  // One who waits until then.
  bool May(Nanos now, Nanos until) const {
    return came_soon_ && now >= not_before_ && now >= shared_until_ && until - now >= kWithTicks;
  }

  // A sleep of whatever kind ended, with a datagram or without.
  void Note(bool came, Nanos slept) { came_soon_ = came && slept < kLongest; }

  // Something was due while one slept in that call: its datagrams get lost, or it waits for its
  // turn to send.
  void NoteLate(Nanos now) {
    if (now > not_before_ + kForgets) pause_ = 0;
    pause_ = std::clamp(2 * pause_, kLeastPause, kMostPause);
    not_before_ = now + pause_;
  }

  // Another thread called meanwhile: what it leaves to be done, a timer does.
  void NoteOthers(Nanos now) { shared_until_ = now + kAlone; }

 private:
  bool came_soon_ = false;
  Nanos pause_ = 0;
  Nanos not_before_ = 0, shared_until_ = 0;
};

}  // namespace sekisho::pm
