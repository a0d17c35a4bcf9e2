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
  // The descriptor is readable at `when` or earlier; never earlier than what was set before.
  void Set(Nanos when, Nanos now);
  // So that the descriptor is not readable any more, if it was.
  void Quiet(Nanos now);
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  Nanos set_ = kNever;
};

}  // namespace sekisho::pm
