// SPDX-License-Identifier: Apache-2.0
// A timer for poll that is set as seldom as possible: to set one costs a virtual machine as much as
// a system call on a datagram, and most deadlines of a protocol move on before they are due.
#pragma once

#include <system_error>

#include "transport/pm/types.h"

namespace sekisho::pm {

class LazyTimer {
 public:
  LazyTimer() = default;
  ~LazyTimer();
  LazyTimer(const LazyTimer&) = delete;
  LazyTimer& operator=(const LazyTimer&) = delete;

  std::error_code Open();
  // The descriptor is readable at `when` or earlier; never earlier than what was set before.  One
  // that `may_be_late` is set farther ahead if the last ones went off in vain, by up to kSlack.
  void Set(Nanos when, Nanos now, bool may_be_late = false);
  // So that the descriptor is not readable any more, if it was.  Whether anything was due.
  void Quiet(Nanos now, bool was_due);
  int fd() const { return fd_; }

 private:
  static constexpr Nanos kSlack = kMillisecond;
  static constexpr int kMostStretch = 3;

  int fd_ = -1;
  Nanos set_ = kNever;
  int stretch_ = 0;  // so many times as far ahead as need be, besides
};

}  // namespace sekisho::pm
