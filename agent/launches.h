// SPDX-License-Identifier: Apache-2.0
// Helpers that tasks of this node have asked for on other nodes: who waits for which.  No I/O.
#pragma once

#include <functional>
#include <map>

#include "agent/outbox.h"
#include "proto/nodes.pb.h"

namespace sekisho::agent {

class Launches {
 public:
  // Without a kind: the helper has taken more of its input.
  using Answer = std::function<void(proto::LaunchOut)>;

  // Ids begin at `first_id`, so that an agent's next life does not repeat them.
  Launches(Outbox& outbox, uint64_t first_id) : outbox_(outbox), next_id_(first_id) {}
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;

  // Sends the request, and again after each Welcome until it has ended; `answer` gets what comes
  // back.
  uint64_t Open(proto::AgentMessage::Launch launch, Answer answer);
  void Input(uint64_t id, std::string data, bool is_end);
  // Bytes of input that were sent and that the helper has not taken.
  uint64_t InputInFlight(uint64_t id) const;
  // Its launcher has taken the stream up to `offset`.
  void OutputTaken(uint64_t id, proto::OutputChunk::Stream stream, uint64_t offset);
  // Nobody waits any more.  A helper that still runs gets the end of its input; one that has ended is
  // forgotten.
  void Close(uint64_t id);

  void OnWelcome();
  // False if the message is about something else.
  bool Handle(const proto::ServerMessage& message);

  size_t size() const { return open_.size(); }

 private:
  struct Entry {
    proto::AgentMessage::Launch request;
    Answer answer;
    bool has_ended = false;
    uint64_t input_sent = 0;
    uint64_t input_taken = 0;
  };
  Outbox& outbox_;
  uint64_t next_id_;
  std::map<uint64_t, Entry> open_;
};

}  // namespace sekisho::agent
