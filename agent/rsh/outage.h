// SPDX-License-Identifier: Apache-2.0
// Calls of the agent that break: which begin anew, and when the user hears of it.  Pure.
#pragma once

#include <chrono>
#include <optional>

#include "common/status.h"

namespace sekisho::agent::rsh {

// Did the call end by the agent's death, or its connection's?  All else is its word.
bool IsBreak(const absl::Status& status);

class Outage {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kToldAfter{5};

  // Another call broke.  True, once: it is time to tell.
  bool OnBreak(Clock::time_point now);
  // The agent is heard.
  void End() { *this = {}; }

 private:
  std::optional<Clock::time_point> since_;
  bool is_told_ = false;
};

}  // namespace sekisho::agent::rsh
