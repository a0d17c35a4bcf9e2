// SPDX-License-Identifier: Apache-2.0
// One stream of a task on its way from the spool file to the queue server.
#pragma once

#include <cstdint>

#include "agent/outbox.h"
#include "agent/output_window.h"
#include "agent/task_directory.h"

namespace sekisho::agent {

class SpooledOutput {
 public:
  using Stream = proto::OutputChunk::Stream;

  // `is_ours`: false if the task writes to a file of its account instead.  `limit`: in bytes, 0 = none.
  SpooledOutput(const TaskDirectory& directory, const proto::TaskKey& key, Stream stream,
                bool is_ours, uint64_t limit, Outbox& outbox);
  SpooledOutput(const SpooledOutput&) = delete;
  SpooledOutput& operator=(const SpooledOutput&) = delete;

  void Resume(uint64_t offset);
  void Recall() { outbox_.Taken(window_.in_flight()); }
  // Sends what the file has and the windows allow.
  void Pump();
  void Taken(uint64_t offset);

  uint64_t size() const { return window_.size(); }
  bool is_over_limit() const { return window_.is_over_limit(); }

 private:
  const char* name() const;
  void Look();
  int Open(int flags) const;
  bool SendChunk(int fd, const OutputWindow::Chunk& chunk);

  const TaskDirectory& directory_;
  const proto::TaskKey key_;
  const Stream stream_;
  const bool is_ours_;
  Outbox& outbox_;
  OutputWindow window_;
  uint64_t freed_ = 0;  // of the file, given back to the disk
};

}  // namespace sekisho::agent
