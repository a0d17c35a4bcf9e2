// SPDX-License-Identifier: Apache-2.0
// The classic profile: rules S1 to S4 and R1 to R5 of the paper of 1999, go-back-N with Ack and
// Nack. docs/protocol/9-pm.md, "Classic profile".  The baseline of every benchmark, not for use.
#pragma once

#include <cstdint>
#include <system_error>

#include "transport/pm/endpoint.h"

namespace sekisho::pm {

struct ClassicConfig {
  NodeId node = 0;
  std::uint16_t nodes = 2;
  std::uint16_t context = 0;
  std::uint32_t message_max = 8192;  // one message is one datagram
  std::uint32_t slots = 64;          // messages per peer and direction; a power of two
  std::uint32_t precursor_messages = 32;
  std::uint32_t precursor_bytes = 64 * 1024;
  Nanos timeout = 20 * kMillisecond;
  std::uint32_t first_number = 0;  // tests begin below the wrap
  JobKey key{};
};

struct ClassicCounters {
  std::uint64_t datagrams_in = 0, datagrams_out = 0, dropped = 0, bad_tag = 0;
  std::uint64_t resent = 0, timeouts = 0, nacks = 0, acks = 0, messages_in = 0, messages_out = 0;
};

class ClassicEndpoint {
 public:
  static std::size_t MemoryNeeded(const ClassicConfig& config);

  std::error_code Init(const ClassicConfig& config, MutableBytes memory, Nanos now);
  std::error_code SetAddress(NodeId node, const Address& address);

  std::error_code Send(NodeId node, Bytes message, Nanos now);
  bool Receive(Message& message);
  std::error_code Release(NodeId node, Nanos now);

  void OnDatagram(MutableBytes datagram, Nanos now);
  std::size_t NextDatagram(Nanos now, MutableBytes room, Address& to);
  void OnTimer(Nanos now);
  Nanos NextDeadline() const;

  PayloadKey payload_key_{};
  bool Drained(NodeId node) const { return peers_[node].base == peers_[node].next; }
  const ClassicCounters& counters() const { return counters_; }

 private:
  struct ClassicPeer {
    Address address;
    SipKey send_key{}, receive_key{};
    // Numbers wrap; they are compared by their distance.
    std::uint32_t base = 0;     // oldest that waits for its Ack
    std::uint32_t cursor = 0;   // next to leave
    std::uint32_t next = 0;     // next that the application gives
    std::uint32_t highest = 0;  // behind the newest that ever left
    std::uint32_t limit = 0;    // precursor limit now
    Nanos waiting_since = 0;
    std::uint32_t expected = 0;
    std::uint32_t released = 0;
    bool open = false, ack_due = false, nack_due = false, nacked = false, full = false;
  };
  struct Slot {
    std::uint32_t length = 0;
  };

  void Cut(Arena& arena);
  std::size_t SlotIndex(NodeId node, std::uint32_t number) const {
    return std::size_t{node} * config_.slots + (number & (config_.slots - 1));
  }
  MutableBytes Buffer(MutableBytes buffers, std::size_t slot) const {
    return buffers.subspan(slot * config_.message_max, config_.message_max);
  }
  bool MaySend(NodeId node) const;
  void OnClassicData(NodeId node, std::uint32_t number, Bytes payload);
  void OnClassicAck(ClassicPeer& peer, std::uint32_t number, Nanos now);
  std::size_t Write(NodeId node, Kind kind, std::uint32_t number, bool full, Bytes payload,
                    MutableBytes room);

  ClassicConfig config_;
  ClassicCounters counters_;
  std::span<ClassicPeer> peers_;
  std::span<Slot> send_slots_, receive_slots_;
  MutableBytes send_buffers_, receive_buffers_;
  NodeId turn_ = 0;  // whose packets are next
  NodeId receive_turn_ = 0;
};

}  // namespace sekisho::pm
