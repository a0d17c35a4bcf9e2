// SPDX-License-Identifier: Apache-2.0
#include "agent/launches.h"

#include <algorithm>

namespace sekisho::agent {

uint64_t Launches::Open(proto::AgentMessage::Launch launch, Answer answer) {
  const uint64_t id = next_id_++;
  launch.set_id(id);
  proto::AgentMessage message;
  *message.mutable_launch() = launch;
  open_[id] = {std::move(launch), std::move(answer)};
  outbox_.Push(std::move(message));
  return id;
}

void Launches::Input(uint64_t id, std::string data, bool is_end) {
  if (const auto found = open_.find(id); found != open_.end()) {
    found->second.input_sent += data.size();
  }
  proto::AgentMessage message;
  message.mutable_launch_input()->set_id(id);
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
  proto::AgentMessage message;
  message.mutable_launch_input()->set_id(id);
  message.mutable_launch_input()->set_cancel(true);
  outbox_.Push(std::move(message));
  open_.erase(found);
}

void Launches::OnWelcome() {
  for (const auto& [id, entry] : open_) {
    if (!entry.has_ended) {
      proto::AgentMessage message;
      *message.mutable_launch() = entry.request;
      message.mutable_launch()->set_again(true);
      outbox_.Push(std::move(message));
    }
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
  } else {
    return false;
  }
  if (const auto found = open_.find(id); found != open_.end()) {
    Entry& entry = found->second;
    entry.has_ended = entry.has_ended || out.has_ended();
    if (message.has_launch_input_taken()) {
      entry.input_taken = std::clamp(message.launch_input_taken().offset(), entry.input_taken, entry.input_sent);
    }
    found->second.answer(std::move(out));
  }
  return true;
}

}  // namespace sekisho::agent
