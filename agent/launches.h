// SPDX-License-Identifier: Apache-2.0
// Helpers that tasks of this node have asked for on other nodes: who waits for which.  What has to outlive
// us or a connection is with those who wait, agent/rsh: they say it again.  No I/O.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "agent/outbox.h"
#include "proto/nodes.pb.h"

namespace sekisho::agent {

class Launches {
 public:
  // Nothing: something may be lost, and the launch has to be opened anew; no more will come.
  using Answer = std::function<void(std::optional<proto::LaunchOut>)>;

  explicit Launches(Outbox& outbox) : outbox_(outbox) {}
  Launches(const Launches&) = delete;
  Launches& operator=(const Launches&) = delete;

  // Sends the request; `answer` gets what comes back.  Its input begins at `input_offset`.  False: it is
  // open already.
  bool Open(proto::AgentMessage::Launch launch, uint64_t input_offset, Answer answer);
  void Input(uint64_t id, std::string data, bool is_end);
  // Bytes of input that were sent and that the helper has not taken.
  uint64_t InputInFlight(uint64_t id) const;
  // Its launcher has taken the stream up to `offset`.
  void OutputTaken(uint64_t id, proto::OutputChunk::Stream stream, uint64_t offset);
  // Its launcher has gone, unless it was told to open it anew.  A helper that still runs gets the end of its
  // input; one that has ended is forgotten.
  void Close(uint64_t id);

  // The connection to the queue server.
  void OnLost();
  // False if the message is about something else.
  bool Handle(const proto::ServerMessage& message);

  size_t size() const { return open_.size(); }

 private:
  struct Entry {
    Answer answer;
    uint64_t input_sent = 0;
    uint64_t input_taken = 0;
    bool is_lost = false;
  };
  static void Lose(Entry& entry);

  Outbox& outbox_;
  std::map<uint64_t, Entry> open_;
};

}  // namespace sekisho::agent
