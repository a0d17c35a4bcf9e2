// SPDX-License-Identifier: Apache-2.0
#include "agent/launches.h"

#include <algorithm>

namespace sekisho::agent {

bool Launches::Open(proto::AgentMessage::Launch launch, uint64_t input_offset, Answer answer) {
  const bool is_new = open_.try_emplace(launch.id(), Entry{std::move(answer), input_offset, input_offset}).second;
  if (is_new) {
    proto::AgentMessage message;
    *message.mutable_launch() = std::move(launch);
    outbox_.Push(std::move(message));
  }
  return is_new;
}

void Launches::Input(uint64_t id, std::string data, bool is_end) {
  const auto found = open_.find(id);
  if (found == open_.end() || found->second.is_lost) {
    return;
  }
  proto::AgentMessage message;
  message.mutable_launch_input()->set_id(id);
  message.mutable_launch_input()->set_offset(found->second.input_sent);
  found->second.input_sent += data.size();
  message.mutable_launch_input()->set_data(std::move(data));
  message.mutable_launch_input()->set_end(is_end);
  outbox_.Push(std::move(message));
}

uint64_t Launches::InputInFlight(uint64_t id) const {
  const auto found = open_.find(id);
  return found == open_.end() ? 0 : found->second.input_sent - found->second.input_taken;
}

void Launches::OutputTaken(uint64_t id, proto::OutputChunk::Stream stream, uint64_t offset) {
  proto::AgentMessage message;
  message.mutable_launch_taken()->set_id(id);
  message.mutable_launch_taken()->set_stream(stream);
  message.mutable_launch_taken()->set_offset(offset);
  outbox_.Push(std::move(message));
}

void Launches::Close(uint64_t id) {
  const auto found = open_.find(id);
  if (found == open_.end()) {
    return;
  }
  if (!found->second.is_lost) {
    proto::AgentMessage message;
    message.mutable_launch_input()->set_id(id);
    message.mutable_launch_input()->set_offset(found->second.input_sent);
    message.mutable_launch_input()->set_cancel(true);
    outbox_.Push(std::move(message));
  }
  open_.erase(found);
}

void Launches::Lose(Entry& entry) {
  if (!entry.is_lost) {
    entry.is_lost = true;
    entry.answer(std::nullopt);
  }
}

void Launches::OnLost() {
  for (auto& [id, entry] : open_) {
    Lose(entry);
  }
}

bool Launches::Handle(const proto::ServerMessage& message) {
  proto::LaunchOut out;
  uint64_t id = 0;
  if (message.has_launch_output()) {
    id = message.launch_output().id();
    *out.mutable_output() = message.launch_output();
  } else if (message.has_launch_ended()) {
    id = message.launch_ended().id();
    *out.mutable_ended() = message.launch_ended();
  } else if (message.has_launch_input_taken()) {
    id = message.launch_input_taken().id();
    *out.mutable_input_taken() = message.launch_input_taken();
  } else if (message.has_launch_again()) {
    id = message.launch_again().id();
  } else {
    return false;
  }
  const auto found = open_.find(id);
  if (found == open_.end() || found->second.is_lost) {
    return true;
  }
  Entry& entry = found->second;
  if (message.has_launch_again()) {
    Lose(entry);
    return true;
  }
  if (message.has_launch_input_taken()) {
    entry.input_taken = std::clamp(message.launch_input_taken().offset(), entry.input_taken, entry.input_sent);
  }
  entry.answer(std::move(out));
  return true;
}

}  // namespace sekisho::agent
