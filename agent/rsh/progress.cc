// SPDX-License-Identifier: Apache-2.0
#include "agent/rsh/progress.h"

#include <algorithm>

namespace sekisho::agent::rsh {

void Progress::Describe(proto::LaunchIn::Begin& begin) const {
  begin.set_again(has_begun_);
  begin.mutable_taken()->set_stdout_offset(written_[0]);
  begin.mutable_taken()->set_stderr_offset(written_[1]);
  begin.set_input_offset(input_offset_);
}

void Progress::InputTaken(uint64_t offset) {
  has_begun_ = true;
  const uint64_t taken = std::clamp(offset, input_offset_, input_offset_ + input_.size());
  input_.erase(0, taken - input_offset_);
  input_offset_ = taken;
  while (!input_ends_.empty() && input_ends_.front() <= taken) {
    input_ends_.pop_front();
  }
}

std::string_view Progress::Output(const proto::ServerMessage::LaunchOutput& output) {
  has_begun_ = true;
  uint64_t& received = received_[output.stream() == proto::OutputChunk::STDERR];
  const uint64_t offset = output.has_offset() ? output.offset() : received;  // none: a queue server of before
  const uint64_t end = offset + output.data().size();
  if (offset > received || end <= received) {
    return {};  // it comes again, with what is before it; or it did
  }
  std::string_view news = output.data();
  news.remove_prefix(received - offset);
  received = end;
  return news;
}

}  // namespace sekisho::agent::rsh
