// SPDX-License-Identifier: Apache-2.0
// Round trip estimates of one peer and the times that follow from them: docs/protocol/9-pm.md,
// "Rules".
#pragma once

#include <algorithm>

#include "transport/pm/types.h"

namespace sekisho::pm {

class Rtt {
 public:
  void Sample(Nanos rtt, Nanos ack_delay, Nanos now) {
    rtt = std::max<Nanos>(rtt, 1);
    if (rtt <= minimum_ || now - minimum_time_ > 10 * kSecond) minimum_ = rtt, minimum_time_ = now;
    if (now - epoch_time_ > kEpoch) lowest_before_ = lowest_, lowest_ = rtt, epoch_time_ = now;
    lowest_ = std::min(lowest_, rtt);
    if (rtt - ack_delay >= minimum_) rtt -= ack_delay;
    // Who was stopped for a while, here or there, is not farther away for that: a loss soon after
    // would wait as long.  If the next one takes as long, he is.
    const bool is_odd = measured_ && rtt > 4 * ProbeTimeout();
    if (is_odd && !was_odd_) {
      was_odd_ = true;
      return;
    }
    was_odd_ = false;
    latest_ = rtt;
    if (!measured_) {
      smoothed_ = rtt, deviation_ = rtt / 2, measured_ = true;
      return;
    }
    deviation_ += (std::abs(smoothed_ - rtt) - deviation_) / 4;
    smoothed_ += (rtt - smoothed_) / 8;
  }

  bool measured() const { return measured_; }
  Nanos smoothed() const { return smoothed_; }
  Nanos latest() const { return latest_; }
  Nanos minimum() const { return minimum_ == kNever ? smoothed_ : minimum_; }

  // The smallest of some minutes: also where a queue has not been empty for longer than minimum()
  // remembers.
  Nanos lowest() const { return std::min({lowest_, lowest_before_, minimum()}); }

  // How long a receiver may keep an acknowledgement back.
  Nanos AckDelay() const {
    return std::min(std::max(smoothed_ / 4, 25 * kMicrosecond), kMillisecond);
  }

  // A round trip measured while the clock jumped must not silence a sender for a minute.
  Nanos ProbeTimeout() const {
    return std::min(smoothed_ + std::max(4 * deviation_, 100 * kMicrosecond) + AckDelay(), kSecond);
  }

  // The n-th time-out in a row, n from 0.
  Nanos RetransmitTimeout(unsigned n) const {
    return std::min(std::max(ProbeTimeout(), kMillisecond) << std::min(n, 20u), kSecond);
  }

 private:
  static constexpr Nanos kEpoch = 300 * kSecond;

  Nanos smoothed_ = kMillisecond;
  Nanos deviation_ = kMillisecond / 2;
  Nanos latest_ = kMillisecond;
  Nanos minimum_ = kNever;
  Nanos minimum_time_ = 0;
  Nanos lowest_ = kNever, lowest_before_ = kNever;
  Nanos epoch_time_ = 0;
  bool measured_ = false;
  bool was_odd_ = false;
};

}  // namespace sekisho::pm
