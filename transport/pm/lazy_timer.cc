// SPDX-License-Identifier: Apache-2.0
// A timer for poll that is set as seldom as possible.
#include "transport/pm/lazy_timer.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

namespace sekisho::pm {

LazyTimer::~LazyTimer() {
  if (fd_ >= 0) close(fd_);
}

std::error_code LazyTimer::Open() {
  fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd_ < 0) return {errno, std::generic_category()};
  return {};
}

void LazyTimer::Set(Nanos when, Nanos now) {
  if (when == kNever || (set_ > now && set_ <= when)) return;
  set_ = std::max<Nanos>(when, 1);
  itimerspec setting{};
  setting.it_value = {set_ / kSecond, set_ % kSecond};
  (void)timerfd_settime(fd_, TFD_TIMER_ABSTIME, &setting, nullptr);
}

void LazyTimer::Quiet(Nanos now) {
  if (set_ > now) return;
  std::uint64_t count;
  (void)!read(fd_, &count, sizeof count);
  set_ = kNever;
}

}  // namespace sekisho::pm
