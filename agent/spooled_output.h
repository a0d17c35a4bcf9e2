// SPDX-License-Identifier: Apache-2.0
// One stream of a task on its way from the spool file to the queue server.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "agent/outbox.h"
#include "agent/output_window.h"
#include "agent/task_directory.h"

namespace sekisho::agent {

class SpooledOutput {
 public:
  using Stream = proto::OutputChunk::Stream;
  using Clock = std::chrono::steady_clock;

  // What the server has taken stays here so long.  It does not sync what it takes: by then the kernel has.
  static constexpr std::chrono::seconds kKeptFor{60};

  // `is_ours`: false if the task writes to a file of its account instead.  `limit`: in bytes, 0 = none.
  SpooledOutput(const TaskDirectory& directory, const proto::TaskKey& key, Stream stream,
                bool is_ours, uint64_t limit, Outbox& outbox);
  SpooledOutput(const SpooledOutput&) = delete;
  SpooledOutput& operator=(const SpooledOutput&) = delete;

  void Resume(uint64_t offset);
  void Recall() { outbox_.Taken(window_.in_flight()); }
  // Sends what the file has and the windows allow.
  void Pump();
  void Taken(uint64_t offset, Clock::time_point now);
  // Gives back to the disk what was taken long enough ago.
  void Free(Clock::time_point now);

  uint64_t size() const { return window_.size(); }
  bool is_over_limit() const { return window_.is_over_limit(); }

 private:
  struct Mark {
    Clock::time_point time;
    uint64_t offset = 0;  // all before it had been taken by then
  };

  const char* name() const;
  std::string FreedName() const { return std::string(name()) + "_freed"; }
  // What the server asks for below this is neither in the file nor anywhere else.
  uint64_t gone() const { return std::max(freed_, window_.begin()); }
  void Look();
  int Open(int flags) const;
  bool SendChunk(int fd, const OutputWindow::Chunk& chunk);

  const TaskDirectory& directory_;
  const proto::TaskKey key_;
  const Stream stream_;
  const bool is_ours_;
  Outbox& outbox_;
  OutputWindow window_;
  uint64_t freed_ = 0;      // of the stream, given back to the disk
  std::deque<Mark> marks_;  // beyond that, a step apart
};

}  // namespace sekisho::agent
