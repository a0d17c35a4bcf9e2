// SPDX-License-Identifier: Apache-2.0
// Waiting in tests: for what is meant, however slow the machine.  The limit only ends a test that has failed.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include <asio/io_context.hpp>

namespace sekisho::test {

inline constexpr std::chrono::seconds kPatience{20};

// True as soon as `condition` holds.  For what other processes and threads do.
template <typename Condition>
[[nodiscard]] bool Eventually(Condition condition, std::chrono::milliseconds patience = kPatience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// The same while `loop` runs here: for what its coroutines do.
template <typename Condition>
[[nodiscard]] bool EventuallyOn(asio::io_context& loop, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    loop.restart();
    loop.run_one_until(std::min(end, std::chrono::steady_clock::now() + std::chrono::milliseconds(20)));
    if (std::chrono::steady_clock::now() >= end) {
      return false;
    }
  }
  return true;
}

}  // namespace sekisho::test
