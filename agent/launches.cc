// SPDX-License-Identifier: Apache-2.0
#include "agent/launches.h"

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
  proto::AgentMessage message;
  message.mutable_launch_input()->set_id(id);
  message.mutable_launch_input()->set_data(std::move(data));
  message.mutable_launch_input()->set_end(is_end);
  outbox_.Push(std::move(message));
}

void Launches::Close(uint64_t id) {
  const auto found = open_.find(id);
  if (found == open_.end()) {
    return;
  }
  if (!found->second.has_ended) {
    proto::AgentMessage message;
    message.mutable_launch_input()->set_id(id);
    message.mutable_launch_input()->set_cancel(true);
    outbox_.Push(std::move(message));
  }
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
  } else {
    return false;
  }
  if (const auto found = open_.find(id); found != open_.end()) {
    found->second.has_ended = out.has_ended();
    found->second.answer(std::move(out));
  }
  return true;
}

}  // namespace sekisho::agent
