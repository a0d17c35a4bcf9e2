// SPDX-License-Identifier: Apache-2.0
// How far one spooled stream of a task has been sent and taken: docs/protocol/7-nodes.md, "Output".
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace sekisho::agent {

inline constexpr size_t kChunkMost = 256 << 10;
inline constexpr uint64_t kUnacknowledgedMost = 1 << 20;  // of one stream

class OutputWindow {
 public:
  struct Chunk {
    uint64_t offset = 0;    // in the stream
    uint64_t position = 0;  // in the file
    size_t size = 0;

    bool operator==(const Chunk&) const = default;
  };

  // The server has all before `offset` and wants what follows.
  void Resume(uint64_t offset);

  // The file's size now.  A task that empties its own output does not take back what was sent: what
  // it writes then follows.
  void SetSize(uint64_t file_size);

  // What to send next, nothing if all is sent or the window is full.
  std::optional<Chunk> Next() const;
  void Sent(size_t size);

  // The server has kept all before `offset`.
  void Taken(uint64_t offset);

  uint64_t in_flight() const { return sent_ - taken_; }
  uint64_t size() const { return size_ + shift_; }  // of the stream
  uint64_t taken_position() const { return taken_ > shift_ ? taken_ - shift_ : 0; }

 private:
  uint64_t size_ = 0;   // of the file
  uint64_t shift_ = 0;  // offset in the stream of the file's first byte
  uint64_t sent_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace sekisho::agent
