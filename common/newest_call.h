// SPDX-License-Identifier: Apache-2.0
// Calls of which a newer one ends the older: who comes back on another connection need not wait
// until his last one is known to have broken.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "common/loop.h"

namespace sekisho {

class NewestCalls {
 public:
  bool empty() const { return by_key_.empty(); }

 private:
  friend class NewestCall;
  std::map<std::string, std::shared_ptr<Event>> by_key_;
};

// A call for `key`, as long as this stands, however it ends.
class NewestCall {
 public:
  NewestCall(NewestCalls& calls, Loop& loop, std::string key)
      : calls_(calls), key_(std::move(key)), end_(std::make_shared<Event>(loop)) {
    if (const auto older = std::exchange(calls_.by_key_[key_], end_)) {
      older->Set();
    }
  }
  ~NewestCall() {
    if (const auto at = calls_.by_key_.find(key_);
        at != calls_.by_key_.end() && at->second == end_) {
      calls_.by_key_.erase(at);
    }
  }
  NewestCall(const NewestCall&) = delete;
  NewestCall& operator=(const NewestCall&) = delete;

  awaitable<void> UntilTakenOver() const {
    const auto end = end_;
    co_await end->Wait();
  }

 private:
  NewestCalls& calls_;
  const std::string key_;
  const std::shared_ptr<Event> end_;
};

}  // namespace sekisho
