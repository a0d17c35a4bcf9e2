// SPDX-License-Identifier: Apache-2.0
// A program of the site's that hears of each job's end: docs/operations/accounting.md, "A hook".  One at a time, in
// order; after a crash it may hear of one twice, and never misses one that the store still has.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "common/event_store.h"
#include "common/loop.h"

namespace sekisho::qserver {

class EndHook {
 public:
  // `program` gets the accounting's line on its standard input; longer than `limit` it may not take.
  EndHook(Loop& loop, EventStore& store, std::string program,
          std::chrono::milliseconds limit = std::chrono::seconds(60))
      : loop_(loop), store_(store), program_(std::move(program)), limit_(limit), news_(loop) {}
  EndHook(const EndHook&) = delete;
  EndHook& operator=(const EndHook&) = delete;

  absl::Status Restore();  // once, before anything else: where it was
  bool Wants(uint64_t sequence) const { return sequence > last_; }
  void OnEnd(uint64_t sequence, std::string line);
  awaitable<void> Run();  // for ever

 private:
  awaitable<void> Tell(std::string line);

  static constexpr size_t kWaitingMost = 100'000;

  Loop& loop_;
  EventStore& store_;
  const std::string program_;
  const std::chrono::milliseconds limit_;
  Signal news_;
  uint64_t last_ = 0;  // that it was given to hear, or will be
  std::deque<std::pair<uint64_t, std::string>> waiting_;
};

}  // namespace sekisho::qserver
