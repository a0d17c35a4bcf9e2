// SPDX-License-Identifier: Apache-2.0
// How far one spooled stream of a task has been sent and taken: docs/protocol/7-nodes.md, "Output".
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace sekisho::agent {

inline constexpr size_t kChunkMost = 256 << 10;
inline constexpr size_t kChunkLeast = 32 << 10;  // while others are on their way
inline constexpr uint64_t kUnacknowledgedMost = 1 << 20;  // of one stream

class OutputWindow {
 public:
  struct Chunk {
    uint64_t offset = 0;    // in the stream
    uint64_t position = 0;  // in the file
    size_t size = 0;

    bool operator==(const Chunk&) const = default;
  };

  // `limit`: of the stream, in bytes; 0 = none.
  explicit OutputWindow(uint64_t limit = 0) : limit_(limit) {}

  // The server has all before `offset` and wants what follows, also if the file has it no more.
  void Resume(uint64_t offset);

  // The file's size now.  A task that empties its own output does not take back what was sent: what
  // it writes then follows.  Nothing beyond the limit is ever sent.
  void SetSize(uint64_t file_size);

  // What to send next, nothing if all is sent, or the window is full, or it is not worth a message yet: a
  // small chunk waits for those before it.  Else what each acknowledgement frees would be the next chunk's
  // size, and a program that writes byte by byte would fill the network with messages.
  std::optional<Chunk> Next() const;
  void Sent(size_t size);

  // The server has kept all before `offset`.
  void Taken(uint64_t offset);

  bool is_over_limit() const { return is_over_limit_; }
  uint64_t in_flight() const { return sent_ - taken_; }
  uint64_t size() const { return size_ + shift_; }  // of the stream
  uint64_t taken() const { return taken_; }
  // Where in the stream the file begins: what was before, the task has emptied.
  uint64_t begin() const { return shift_; }
  // In the file; 0 for what it has no more.
  uint64_t Position(uint64_t offset) const { return offset > shift_ ? offset - shift_ : 0; }

 private:
  uint64_t limit_;
  bool is_over_limit_ = false;
  uint64_t size_ = 0;   // of the file, as far as the limit allows
  uint64_t shift_ = 0;  // begin()
  uint64_t sent_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace sekisho::agent
