// SPDX-License-Identifier: Apache-2.0
// The one event loop of a daemon: asio's names under ours, and a signal between its coroutines.
// One thread runs the loop and owns all state; nothing here is called from another thread.
#pragma once

#include <chrono>
#include <memory>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/dispatch.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include "common/thrown.h"

namespace sekisho {

using Loop = asio::io_context;
// A daemon's.  Never destroyed: gRPC's threads may still post to it while main() returns.
inline Loop& ProcessLoop() {
  static Loop& loop = *new Loop(1);
  return loop;
}

using asio::awaitable;
using asio::co_spawn;
// Completion token: errors come as values, not as exceptions.
inline constexpr auto kAsTuple = asio::experimental::as_tuple(asio::use_awaitable);

// Wakes every coroutine that waits.  Waiting is level-triggered by the caller:
//   while (!condition) co_await changed.Wait();
class Signal {
 public:
  explicit Signal(Loop& loop)
      : timer_(std::make_shared<asio::steady_timer>(loop, asio::steady_timer::time_point::max())) {}
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  void Notify() { timer_->cancel(); }

  awaitable<void> Wait() {
    auto timer = timer_;  // the signal may go while somebody waits
    co_await timer->async_wait(kAsTuple);
  }

  // False if `limit` passed first.
  awaitable<bool> WaitFor(std::chrono::milliseconds limit) {
    auto timer = timer_;
    auto expired = std::make_shared<bool>(false);
    asio::steady_timer deadline(timer->get_executor(), limit);
    deadline.async_wait([timer, expired](const std::error_code& error) {
      if (!error) {
        *expired = true;
        timer->cancel();
      }
    });
    co_await timer->async_wait(kAsTuple);
    co_return !*expired;
  }

 private:
  std::shared_ptr<asio::steady_timer> timer_;
};

// Comes once; who waits later goes on at once.  It must not go while somebody waits.
class Event {
 public:
  explicit Event(Loop& loop) : comes_(loop) {}

  void Set() {
    is_set_ = true;
    comes_.Notify();
  }
  awaitable<void> Wait() {
    while (!is_set_) {
      co_await comes_.Wait();
    }
  }

 private:
  Signal comes_;
  bool is_set_ = false;
};

inline awaitable<void> Sleep(Loop& loop, std::chrono::milliseconds time) {
  asio::steady_timer timer(loop, time);
  co_await timer.async_wait(kAsTuple);
}

}  // namespace sekisho
