// SPDX-License-Identifier: Apache-2.0
// Gives memory back to the system when work that took much of it is over: what a large message and its parts have
// left lies between what stays, and would be kept for ever.
#pragma once

#include <chrono>

#include <malloc.h>

#include "common/loop.h"

namespace sekisho {

class Trimmer {
 public:
  explicit Trimmer(Loop& loop) : timer_(loop) {}

  // Soon: once nobody has asked for a while, so that many pieces of work have it done once.
  void Soon() {
    timer_.expires_after(kPause);
    timer_.async_wait([](const std::error_code& error) {
      if (!error) {
        malloc_trim(0);
      }
    });
  }

 private:
  static constexpr std::chrono::milliseconds kPause{200};
  asio::steady_timer timer_;
};

}  // namespace sekisho
