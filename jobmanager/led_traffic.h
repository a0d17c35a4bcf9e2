// SPDX-License-Identifier: Apache-2.0
// What an account's leaders and the parts of their worlds say to each other, counted by what it is: the messages that
// cross between sites.  docs/operations/metrics.md.  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "proto/world.pb.h"

namespace sekisho::jobmanager {

class LedTraffic {
 public:
  struct Flow {
    uint64_t messages = 0;
    uint64_t bytes = 0;
  };
  // By direction, "down" or "up", and kind: that of the order or report; "submit", "submitted", "present".
  using Flows = std::map<std::pair<std::string, std::string>, Flow>;

  void NoteSubmit(const proto::PartDown& down) { Note("down", "submit", down); }
  void NoteOrder(const proto::Order& order, const proto::PartDown& down);
  void NoteHeard(const proto::PartUp& up);
  const Flows& flows() const { return flows_; }

 private:
  void Note(const std::string& direction, const std::string& kind, const google::protobuf::Message& message);

  Flows flows_;
};

}  // namespace sekisho::jobmanager
