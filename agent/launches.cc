// SPDX-License-Identifier: Apache-2.0
#include "agent/launches.h"

#include <algorithm>
#include <iterator>

#include "agent/rsh/limits.h"

namespace sekisho::agent {

bool Launches::Open(proto::AgentMessage::Launch launch, uint64_t input_offset, Answer answer) {
  const auto [at, is_new] = open_.try_emplace(launch.id());
  if (is_new) {
    Entry& entry = at->second;
    entry.answer = std::move(answer);
    entry.job_id = launch.job_id();
    entry.input_sent = entry.input_taken = input_offset;
    entry.passed_on = {launch.taken().stdout_offset(), launch.taken().stderr_offset()};
    proto::AgentMessage message;
    *message.mutable_launch() = std::move(launch);
    outbox_.Push(std::move(message));
  }
  return is_new;
}

void Launches::Input(uint64_t id, std::string data, bool is_end) {
  const auto found = open_.find(id);
  if (found == open_.end() || found->second.is_lost || found->second.has_input_ended || (data.empty() && !is_end)) {
    return;
  }
  Entry& entry = found->second;
  proto::AgentMessage message;
  proto::AgentMessage::LaunchInput& input = *message.mutable_launch_input();
  input.set_id(id);
  input.set_job_id(entry.job_id);
  input.set_offset(entry.input_sent);
  if (!data.empty()) {
    entry.input_sent += data.size();
    entry.input_ends.insert(entry.input_sent);
  }
  entry.has_input_ended = is_end;
  input.set_data(std::move(data));
  input.set_end(is_end);
  outbox_.Push(std::move(message));
}

bool Launches::HasRoomForInput(uint64_t id) const {
  const auto found = open_.find(id);
  return found == open_.end() || (found->second.input_sent - found->second.input_taken <= rsh::kInputMost &&
                                  found->second.input_ends.size() <= rsh::kInputPiecesMost);
}

void Launches::InputTaken(Entry& entry, uint64_t offset) {
  entry.input_taken = std::clamp(offset, entry.input_taken, entry.input_sent);
  entry.input_ends.erase(entry.input_ends.begin(), entry.input_ends.upper_bound(entry.input_taken));
}

void Launches::OutputTaken(uint64_t id, proto::OutputChunk::Stream stream, uint64_t offset) {
  const auto found = open_.find(id);
  if (found == open_.end() || found->second.is_lost) {
    return;
  }
  std::set<uint64_t>& ends = found->second.output_ends[stream == proto::OutputChunk::STDERR];
  const auto left = ends.upper_bound(offset);
  if (left == ends.begin()) {
    return;
  }
  proto::AgentMessage message;
  message.mutable_launch_taken()->set_id(id);
  message.mutable_launch_taken()->set_job_id(found->second.job_id);
  message.mutable_launch_taken()->set_stream(stream);
  message.mutable_launch_taken()->set_offset(*std::prev(left));
  ends.erase(ends.begin(), left);
  outbox_.Push(std::move(message));
}

void Launches::PassOn(Entry& entry, const proto::ServerMessage::LaunchOutput& output) {
  const int stream = output.stream() == proto::OutputChunk::STDERR;
  uint64_t& passed_on = entry.passed_on[stream];
  passed_on = (output.has_offset() ? output.offset() : passed_on) + output.data().size();  // none: a queue server of before
  entry.output_ends[stream].insert(passed_on);
}

void Launches::Close(uint64_t id) {
  const auto found = open_.find(id);
  if (found == open_.end()) {
    return;
  }
  if (!found->second.is_lost) {
    proto::AgentMessage message;
    message.mutable_launch_input()->set_id(id);
    message.mutable_launch_input()->set_job_id(found->second.job_id);
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
    InputTaken(entry, message.launch_input_taken().offset());
  } else if (message.has_launch_output()) {
    PassOn(entry, message.launch_output());
  }
  entry.answer(std::move(out));
  return true;
}

}  // namespace sekisho::agent
