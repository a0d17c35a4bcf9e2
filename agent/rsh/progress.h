// SPDX-License-Identifier: Apache-2.0
// How far a launch has come, as its launcher alone knows: agents and queue servers forget it when they are
// killed, and are told again.  docs/protocol/7-nodes.md, "Helpers".  Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "proto/nodes.pb.h"

namespace sekisho::agent::rsh {

class Progress {
 public:
  static constexpr size_t kChunkMost = 64 << 10;
  static constexpr size_t kInputMost = 256 << 10;  // that the helper has not taken

  // What a new connection has to be told first.
  void Describe(proto::LaunchIn::Begin& begin) const;
  // ... and then: input that the helper has not taken.
  const std::string& input() const { return input_; }
  bool has_input_ended() const { return has_input_ended_; }

  bool HasRoom() const { return input_.size() + kChunkMost <= kInputMost; }  // for another chunk
  void AddInput(std::string_view data) { input_ += data; }
  void EndInput() { has_input_ended_ = true; }
  void InputTaken(uint64_t offset);

  // What of it is new and has to be written.
  std::string_view Output(const proto::ServerMessage::LaunchOutput& output);
  uint64_t written(proto::OutputChunk::Stream stream) const { return written_[stream == proto::OutputChunk::STDERR]; }

 private:
  bool has_begun_ = false;  // the helper
  std::string input_;
  uint64_t input_offset_ = 0;
  bool has_input_ended_ = false;
  std::array<uint64_t, 2> written_ = {0, 0};
};

}  // namespace sekisho::agent::rsh
