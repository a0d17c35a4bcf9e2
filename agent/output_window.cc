// SPDX-License-Identifier: Apache-2.0
#include "agent/output_window.h"

#include <algorithm>

namespace sekisho::agent {

void OutputWindow::Resume(uint64_t offset) {
  if (offset > size()) {  // the task emptied the file, and we did not see it or have forgotten
    shift_ = offset - size_;
  }
  sent_ = taken_ = offset;
}

void OutputWindow::SetSize(uint64_t file_size) {
  if (file_size < size_ && file_size < sent_ - std::min(sent_, shift_)) {
    shift_ = sent_;
  }
  const uint64_t most = limit_ == 0 ? file_size : limit_ - std::min(limit_, shift_);
  is_over_limit_ = is_over_limit_ || file_size > most;
  size_ = std::min(file_size, most);
}

std::optional<OutputWindow::Chunk> OutputWindow::Next() const {
  if (sent_ >= size() || in_flight() >= kUnacknowledgedMost) {
    return std::nullopt;
  }
  const uint64_t size = std::min(
      {this->size() - sent_, kUnacknowledgedMost - in_flight(), static_cast<uint64_t>(kChunkMost)});
  if (size < kChunkLeast && in_flight() > 0) {
    return std::nullopt;
  }
  return Chunk{sent_, Position(sent_), static_cast<size_t>(size)};
}

void OutputWindow::Sent(size_t size) { sent_ += size; }

void OutputWindow::Taken(uint64_t offset) { taken_ = std::clamp(offset, taken_, sent_); }

}  // namespace sekisho::agent
