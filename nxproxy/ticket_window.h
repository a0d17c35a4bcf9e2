// SPDX-License-Identifier: Apache-2.0
// Which tickets of a session have been used.  Pure.
#pragma once

#include <bitset>
#include <cstdint>

namespace sekisho::nxproxy {

class TicketWindow {
 public:
  static constexpr uint64_t kWidth = 4096;

  // Marks `counter` as used; false if it was, or if it lies too far behind to know.
  bool Use(uint64_t counter);

 private:
  uint64_t highest_ = 0;
  std::bitset<kWidth> used_;  // of counter % kWidth, for the counters (highest_ - kWidth, highest_]
};

}  // namespace sekisho::nxproxy
