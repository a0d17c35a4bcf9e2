// SPDX-License-Identifier: Apache-2.0
// What would block the loop is done on a thread of its own.
#pragma once

#include <memory>
#include <utility>

#include <asio/executor_work_guard.hpp>
#include <asio/thread_pool.hpp>

#include "common/loop.h"

namespace sekisho {

// Runs `work` on the pool and comes back to the loop with its result.  Who waits may be cancelled meanwhile: nothing
// of him is on the other thread (a coroutine that is spawned there would share his cancellation without a lock).
template <typename Work>
auto Away(Loop& loop, asio::thread_pool& pool, Work work) -> awaitable<decltype(work())> {
  struct State {
    explicit State(Loop& loop) : done(loop) {}
    Signal done;
    std::unique_ptr<decltype(work())> result;
  };
  auto state = std::make_shared<State>(loop);
  asio::post(pool, [&loop, state, work = std::move(work), guard = asio::make_work_guard(loop)]() mutable {
    auto result = std::make_unique<decltype(work())>(work());
    asio::post(loop, [state = std::move(state), result = std::move(result), guard = std::move(guard)]() mutable {
      state->result = std::move(result);
      state->done.Notify();
    });
  });
  while (state->result == nullptr) {
    co_await state->done.Wait();
  }
  co_return std::move(*state->result);
}

}  // namespace sekisho
