// SPDX-License-Identifier: Apache-2.0
// How far a launch has come, as its launcher alone knows: agents and queue servers forget it when they are
// killed, and are told again.  docs/protocol/7-nodes.md, "Helpers".  Pure.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "agent/rsh/limits.h"
#include "proto/nodes.pb.h"

namespace sekisho::agent::rsh {

class Progress {
 public:
  static constexpr size_t kChunkMost = 64 << 10;

  // What a new connection has to be told first.
  void Describe(proto::LaunchIn::Begin& begin) const;
  // ... and then: input that the helper has not taken.
  const std::string& input() const { return input_; }
  bool has_input_ended() const { return has_input_ended_; }

  // For another chunk.
  bool HasRoom() const { return input_.size() + kChunkMost <= kInputMost && input_ends_.size() < kInputPiecesMost; }
  void AddInput(std::string_view data) {
    input_ += data;
    input_ends_.push_back(input_offset_ + input_.size());
  }
  void EndInput() { has_input_ended_ = true; }
  void InputTaken(uint64_t offset);

  // What of it is new and has to be written.
  std::string_view Output(const proto::ServerMessage::LaunchOutput& output);
  // So much of what is not has been.
  void Written(proto::OutputChunk::Stream stream, uint64_t size) { written_[stream == proto::OutputChunk::STDERR] += size; }
  uint64_t written(proto::OutputChunk::Stream stream) const { return written_[stream == proto::OutputChunk::STDERR]; }
  bool is_all_written() const { return written_ == received_; }
  // All output came before this end.  Else it was said to an earlier connection, and comes again.
  bool HasAllBefore(const proto::ServerMessage::LaunchEnded& ended) const {
    return received_[0] >= ended.stdout_size() && received_[1] >= ended.stderr_size();
  }

 private:
  bool has_begun_ = false;  // the helper
  std::string input_;
  uint64_t input_offset_ = 0;
  std::deque<uint64_t> input_ends_;  // of its pieces
  bool has_input_ended_ = false;
  std::array<uint64_t, 2> received_ = {0, 0};
  std::array<uint64_t, 2> written_ = {0, 0};  // of it
};

}  // namespace sekisho::agent::rsh
