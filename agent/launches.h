// SPDX-License-Identifier: Apache-2.0
// Helpers that tasks of this node have asked for on other nodes: who waits for which.  What has to outlive
// us or a connection is with those who wait, agent/rsh: they say it again.  No I/O.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

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
  // Nothing without data, and nothing after the end, goes further.
  void Input(uint64_t id, std::string data, bool is_end);
  // May there be more?  What was sent and the helper has not taken is limited, in bytes and in pieces.
  bool HasRoomForInput(uint64_t id) const;
  // Its launcher has taken the stream up to `offset`.  At most one message for each that brought output.
  void OutputTaken(uint64_t id, proto::OutputChunk::Stream stream, uint64_t offset);
  // Its launcher has gone, unless it was told to open it anew.  A helper that still runs gets the end of its
  // input; one that has ended is forgotten.
  void Close(uint64_t id);

  // The connection to the queue server.
  void OnWelcome(const proto::ServerMessage::Welcome& welcome) { can_relaunch_ = welcome.relaunches(); }
  void OnLost();
  // Does the queue server take a launch up again?  One of before would start another helper.
  bool can_relaunch() const { return can_relaunch_; }
  // False if the message is about something else.
  bool Handle(const proto::ServerMessage& message);

  size_t size() const { return open_.size(); }

 private:
  struct Entry {
    Answer answer;
    std::string job_id;
    uint64_t input_sent = 0;
    uint64_t input_taken = 0;
    std::set<uint64_t> input_ends;  // of pieces that the helper has not taken
    bool has_input_ended = false;
    std::array<uint64_t, 2> passed_on = {0, 0};     // of the output
    std::array<std::set<uint64_t>, 2> output_ends;  // of pieces that the launcher has not taken
    bool is_lost = false;
  };
  static void Lose(Entry& entry);
  static void PassOn(Entry& entry, const proto::ServerMessage::LaunchOutput& output);
  static void InputTaken(Entry& entry, uint64_t offset);

  Outbox& outbox_;
  std::map<uint64_t, Entry> open_;
  bool can_relaunch_ = false;
};

}  // namespace sekisho::agent
