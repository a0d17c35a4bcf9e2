// SPDX-License-Identifier: Apache-2.0
// What was read of our standard input and no task has taken yet: kept, since the site may ask for
// it again after a connection inside it broke.  Pure.
#pragma once

#include <cstdint>
#include <string>

#include "proto/job.pb.h"

namespace sekisho::client {

class UnsentInput {
 public:
  void Add(const std::string& data) { kept_ += data; }
  void End() { has_ended_ = true; }

  uint64_t first() const { return first_; }                // of what is kept
  uint64_t size() const { return first_ + kept_.size(); }  // of all that was read
  bool has_ended() const { return has_ended_; }

  // What there is from `offset` on, at most `most` bytes; it may be none.
  proto::InputChunk From(uint64_t offset, size_t most) const;

  // The task has taken the input up to `offset`.  False: no more of it than before, or the job
  // takes none.
  bool Take(uint64_t offset);
  bool is_done() const { return has_ended_ && kept_.empty(); }

 private:
  std::string kept_;
  uint64_t first_ = 0;
  bool has_ended_ = false;
};

}  // namespace sekisho::client
