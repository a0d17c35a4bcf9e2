// SPDX-License-Identifier: Apache-2.0
#include "client/job/progress.h"

#include <algorithm>

namespace sekisho::client {

Progress::Progress(proto::AttachRequest wanted) : wanted_(std::move(wanted)) {
  for (const proto::OutputPosition& position : wanted_.position()) {
    seen_[{position.task(), int(position.stream())}] = position.offset();
  }
}

std::string_view Progress::Take(const proto::OutputChunk& chunk) {
  uint64_t& seen = seen_[{chunk.task(), int(chunk.stream())}];
  const std::string_view data = chunk.data();
  const uint64_t known = chunk.offset() < seen ? std::min<uint64_t>(seen - chunk.offset(), data.size()) : 0;
  seen = std::max(seen, chunk.offset() + data.size());
  return data.substr(known);
}

void Progress::Take(const proto::JobEvent& event) {
  wanted_.set_after_sequence(std::max(wanted_.after_sequence(), event.sequence()));
}

proto::AttachRequest Progress::Again(const std::string& job_id) const {
  proto::AttachRequest request = wanted_;
  request.set_job_id(job_id);
  request.clear_position();
  for (const auto& [key, offset] : seen_) {
    proto::OutputPosition& position = *request.add_position();
    position.set_task(key.first);
    position.set_stream(proto::OutputChunk::Stream(key.second));
    position.set_offset(offset);
  }
  return request;
}

}  // namespace sekisho::client
