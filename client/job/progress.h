// SPDX-License-Identifier: Apache-2.0
// How far a stream of updates has come, so that another can go on where it broke.  Pure.
// docs/protocol/4-submission.md, "Attach".
#pragma once

#include <map>
#include <string_view>
#include <utility>

#include "proto/job_service.pb.h"

namespace sekisho::client {

class Progress {
 public:
  // `wanted`: what the first stream was asked for; its job may not be known yet.
  explicit Progress(proto::AttachRequest wanted);

  // The part of it that was not seen before.
  std::string_view Take(const proto::OutputChunk& chunk);
  void Take(const proto::JobEvent& event);

  // For the next stream.
  proto::AttachRequest Again(const std::string& job_id) const;

 private:
  proto::AttachRequest wanted_;
  std::map<std::pair<int, int>, uint64_t> seen_;  // by task and stream: bytes
};

}  // namespace sekisho::client
