// SPDX-License-Identifier: Apache-2.0
#include "agent/output_window.h"

#include <algorithm>

namespace sekisho::agent {

void OutputWindow::Resume(uint64_t offset) {
  if (offset > size()) {  // the task emptied the file, and we did not see it or have forgotten
    shift_ = offset - size_;
  }
  sent_ = taken_ = std::max(offset, shift_);
}

void OutputWindow::SetSize(uint64_t file_size) {
  if (file_size < size_ && file_size < sent_ - std::min(sent_, shift_)) {
    shift_ = sent_;
  }
  size_ = file_size;
}

std::optional<OutputWindow::Chunk> OutputWindow::Next() const {
  if (sent_ >= size() || in_flight() >= kUnacknowledgedMost) {
    return std::nullopt;
  }
  const uint64_t size = std::min(
      {this->size() - sent_, kUnacknowledgedMost - in_flight(), static_cast<uint64_t>(kChunkMost)});
  return Chunk{sent_, sent_ - shift_, static_cast<size_t>(size)};
}

void OutputWindow::Sent(size_t size) { sent_ += size; }

void OutputWindow::Taken(uint64_t offset) { taken_ = std::clamp(offset, taken_, sent_); }

}  // namespace sekisho::agent
