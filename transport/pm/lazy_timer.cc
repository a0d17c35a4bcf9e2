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

void LazyTimer::Set(Nanos when, Nanos now, bool may_be_late) {
  if (when == kNever) return;
  const Nanos last =
      when + (may_be_late ? std::clamp<Nanos>(stretch_ * (when - now), 0, kSlack) : 0);
  if (set_ > now && set_ <= last) return;
  set_ = std::max<Nanos>(last, 1);
  itimerspec setting{};
  setting.it_value = {set_ / kSecond, set_ % kSecond};
  (void)timerfd_settime(fd_, TFD_TIMER_ABSTIME, &setting, nullptr);
}

void LazyTimer::Quiet(Nanos now, bool was_due) {
  if (set_ > now) return;
  std::uint64_t count;
  (void)!read(fd_, &count, sizeof count);
  set_ = kNever;
  stretch_ = was_due ? 0 : std::min(stretch_ + 1, kMostStretch);
}

}  // namespace sekisho::pm
