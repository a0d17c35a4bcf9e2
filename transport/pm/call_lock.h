// SPDX-License-Identifier: Apache-2.0
// The lock of a context, which one thread at a time holds for a call.
#pragma once

#include <sched.h>

#include <atomic>
#include <mutex>

namespace sekisho::pm {

class CallLock {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    ++waiting_;
    mutex_.lock();
    --waiting_;
  }
  void unlock() { mutex_.unlock(); }

  // By who holds it and has nothing to do but look again: those who wait have their turn.  A mutex
  // alone would be taken back before any of them is awake.
  void LetOthersIn() {
    if (waiting_.load(std::memory_order_relaxed) == 0) return;
    unlock();
    for (int i = 0; i < kTurns && waiting_.load(std::memory_order_relaxed) > 0; ++i) sched_yield();
    lock();
  }

  std::mutex& mutex() { return mutex_; }

 private:
  static constexpr int kTurns = 1000;

  std::mutex mutex_;
  std::atomic<int> waiting_{0};
};

}  // namespace sekisho::pm
