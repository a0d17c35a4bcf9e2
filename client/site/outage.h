// SPDX-License-Identifier: Apache-2.0
// A time without connection, from its loss until a word comes again, and when to try in it.  Pure but for its dice.
#pragma once

#include <chrono>
#include <random>

namespace sekisho::client {

class Outage {
 public:
  using Clock = std::chrono::steady_clock;
  // It may last so long.
  explicit Outage(std::chrono::milliseconds patience) : patience_(patience) {}

  bool is_open() const { return is_open_; }
  // Another loss while it lasts is the same outage.  True if it begins.
  bool Begin(Clock::time_point now);
  void End() { is_open_ = false; }
  // How long to wait before the next try; zero: the time is up.
  std::chrono::milliseconds NextPause(Clock::time_point now);

 private:
  const std::chrono::milliseconds patience_;
  bool is_open_ = false;
  Clock::time_point until_;
  std::chrono::milliseconds pause_{0};
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace sekisho::client
