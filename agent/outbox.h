// SPDX-License-Identifier: Apache-2.0
// Messages to the queue server.  Without a connection they are dropped: all that matters is on disk
// and said again after the next Welcome.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "proto/nodes.pb.h"

namespace sekisho::agent {

class Outbox {
 public:
  using Send = std::function<void(proto::AgentMessage)>;
  static constexpr uint64_t kUnacknowledgedMost = 8 << 20;  // output of all tasks together

  Outbox() = default;
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void Connect(Send send) {
    send_ = std::move(send);
    in_flight_ = 0;
  }
  void Disconnect() {
    send_ = nullptr;
    in_flight_ = 0;
  }
  bool is_connected() const { return send_ != nullptr; }

  void Push(proto::AgentMessage message) {
    if (send_) {
      send_(std::move(message));
    }
  }

  bool HasRoom() const { return in_flight_ < kUnacknowledgedMost; }
  void Sent(uint64_t bytes) { in_flight_ += bytes; }
  void Taken(uint64_t bytes) { in_flight_ -= std::min(bytes, in_flight_); }

 private:
  Send send_;
  uint64_t in_flight_ = 0;
};

}  // namespace sekisho::agent
