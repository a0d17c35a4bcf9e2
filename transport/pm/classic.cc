// SPDX-License-Identifier: Apache-2.0
// The classic profile; the comments S1 .. R5 name the paper's rules.
#include "transport/pm/classic.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sekisho::pm {
namespace {

constexpr std::uint32_t kLeastLimit = 1;

// a before b on the circle of numbers.
bool Before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

bool ConfigOk(const ClassicConfig& config) {
  return config.node < config.nodes && std::has_single_bit(config.slots) &&
         config.precursor_messages >= 1 && config.precursor_messages <= config.slots &&
         config.message_max >= 1 && config.message_max <= 60'000;
}

}  // namespace

void ClassicEndpoint::Cut(Arena& arena) {
  const std::size_t slots = std::size_t{config_.nodes} * config_.slots;
  peers_ = arena.Take<ClassicPeer>(config_.nodes);
  send_slots_ = arena.Take<Slot>(slots);
  receive_slots_ = arena.Take<Slot>(slots);
  send_buffers_ = arena.Take<std::uint8_t>(slots * config_.message_max);
  receive_buffers_ = arena.Take<std::uint8_t>(slots * config_.message_max);
}

std::size_t ClassicEndpoint::MemoryNeeded(const ClassicConfig& config) {
  if (!ConfigOk(config)) return 0;
  ClassicEndpoint measure;
  measure.config_ = config;
  Arena arena({});
  measure.Cut(arena);
  return arena.used();
}

std::error_code ClassicEndpoint::Init(const ClassicConfig& config, MutableBytes memory, Nanos now) {
  if (!ConfigOk(config)) return Error::kBadConfig;
  config_ = config;
  Arena arena(memory);
  Cut(arena);
  if (memory.empty() || !arena.fits()) return Error::kNoMemory;
  payload_key_ = MakePayloadKey(config.key);
  for (NodeId node = 0; node < config.nodes; ++node) {
    ClassicPeer& peer = peers_[node];
    peer.send_key = ClassicKey(config.key, {config.context, config.node, node, 0, 0});
    peer.receive_key = ClassicKey(config.key, {config.context, node, config.node, 0, 0});
    peer.base = peer.cursor = peer.next = peer.highest = config.first_number;
    peer.expected = peer.released = config.first_number;
    peer.limit = config.precursor_messages;
    peer.waiting_since = now;
  }
  return {};
}

std::error_code ClassicEndpoint::SetAddress(NodeId node, const Address& address) {
  if (node >= config_.nodes) return Error::kBadNode;
  peers_[node].address = address;
  return {};
}

std::error_code ClassicEndpoint::Send(NodeId node, Bytes message, Nanos now) {
  if (node >= config_.nodes || node == config_.node) return Error::kBadNode;
  if (message.size() > config_.message_max) return Error::kTooLong;
  ClassicPeer& peer = peers_[node];
  if (peer.next - peer.base >= config_.slots) return Error::kWouldBlock;
  if (peer.base == peer.next) peer.waiting_since = now;
  const std::size_t slot = SlotIndex(node, peer.next++);  // S1: numbered, kept until its Ack
  send_slots_[slot].length = static_cast<std::uint32_t>(message.size());
  std::copy(message.begin(), message.end(), Buffer(send_buffers_, slot).begin());
  ++counters_.messages_out;
  return {};
}

bool ClassicEndpoint::Receive(Message& message) {
  for (std::uint32_t i = 0; i < config_.nodes; ++i) {
    const NodeId node = static_cast<NodeId>((receive_turn_ + i) % config_.nodes);
    ClassicPeer& peer = peers_[node];
    if (peer.open || peer.released == peer.expected) continue;
    receive_turn_ = static_cast<NodeId>((node + 1) % config_.nodes);
    const std::size_t slot = SlotIndex(node, peer.released);
    peer.open = true;
    message.source = node;
    message.channel = 0;
    message.more = false;
    message.bytes = {Buffer(receive_buffers_, slot).first(receive_slots_[slot].length), {}};
    ++counters_.messages_in;
    return true;
  }
  return false;
}

std::error_code ClassicEndpoint::Release(NodeId node, Nanos) {
  if (node >= config_.nodes) return Error::kBadNode;
  if (!peers_[node].open) return Error::kBadSequence;
  peers_[node].open = false;
  ++peers_[node].released;
  return {};
}

void ClassicEndpoint::OnClassicData(NodeId node, std::uint32_t number, Bytes payload) {
  ClassicPeer& peer = peers_[node];
  if (Before(number, peer.expected)) {  // R3
    peer.ack_due = true;
    return;
  }
  if (number != peer.expected) {  // R4, R5: one Nack per gap, the rest is thrown away
    ++counters_.dropped;
    if (!peer.nacked) peer.nacked = peer.nack_due = true;
    return;
  }
  if (peer.expected - peer.released >= config_.slots) {  // R2
    ++counters_.dropped;
    if (!peer.nacked) peer.nacked = peer.nack_due = peer.full = true;
    return;
  }
  const std::size_t slot = SlotIndex(node, peer.expected++);  // R1
  receive_slots_[slot].length = static_cast<std::uint32_t>(payload.size());
  std::copy(payload.begin(), payload.end(), Buffer(receive_buffers_, slot).begin());
  peer.ack_due = true;
  peer.nacked = peer.nack_due = peer.full = false;
}

// S2.  `number` is the next that the peer expects.
void ClassicEndpoint::OnClassicAck(ClassicPeer& peer, std::uint32_t number, Nanos now) {
  if (!Before(peer.base, number) || Before(peer.highest, number)) return;
  peer.base = number;
  if (Before(peer.cursor, number)) peer.cursor = number;
  peer.waiting_since = now;
  peer.limit = std::min(peer.limit + 1, config_.precursor_messages);
}

void ClassicEndpoint::OnDatagram(MutableBytes datagram, Nanos now) {
  ++counters_.datagrams_in;
  Packet packet;
  if (ParsePacket(datagram, packet) != ParseError::kNone) return;
  const Header& header = packet.header;
  if (header.context != config_.context || header.destination != config_.node ||
      header.source >= config_.nodes || header.source == config_.node ||
      header.kind < Kind::kClassicData || packet.control.size() != 5 ||
      packet.payload.size() > config_.message_max) {
    return;
  }
  ClassicPeer& peer = peers_[header.source];
  if (!Open(peer.receive_key, nullptr, &payload_key_, datagram, packet)) {
    ++counters_.bad_tag;
    return;
  }
  std::uint32_t number = 0;
  for (int i = 0; i < 4; ++i) number |= static_cast<std::uint32_t>(packet.control[i]) << 8 * i;
  if (header.kind == Kind::kClassicData) {
    OnClassicData(header.source, number, packet.payload);
    return;
  }
  OnClassicAck(peer, number, now);  // a Nack too says what arrived before it
  if (header.kind == Kind::kClassicNack && number == peer.base && packet.control[4] == 0) {
    peer.cursor = peer.base;  // S3, from the named message on
    peer.limit = std::max(peer.limit / 2, kLeastLimit);
    peer.waiting_since = now;
  }
}

bool ClassicEndpoint::MaySend(NodeId node) const {
  const ClassicPeer& peer = peers_[node];
  if (peer.cursor == peer.next || peer.cursor - peer.base >= peer.limit) return false;
  std::uint32_t bytes = 0;
  for (std::uint32_t number = peer.base; number != peer.cursor; ++number) {
    bytes += send_slots_[SlotIndex(node, number)].length;
  }
  return bytes == 0 ||
         bytes + send_slots_[SlotIndex(node, peer.cursor)].length <= config_.precursor_bytes;
}

std::size_t ClassicEndpoint::Write(NodeId node, Kind kind, std::uint32_t number, bool full,
                                   Bytes payload, MutableBytes room) {
  const std::size_t size = kHeaderSize + 5 + payload.size();
  if (room.size() < size + kTagSize) return 0;
  WriteHeader({kind, 0, config_.context, config_.node, node, 0, 5}, room.first<kHeaderSize>());
  for (int i = 0; i < 4; ++i) {
    room[kHeaderSize + i] = static_cast<std::uint8_t>(number >> 8 * i);
  }
  room[kHeaderSize + 4] = full ? 1 : 0;
  std::copy(payload.begin(), payload.end(), room.begin() + kHeaderSize + 5);
  ++counters_.datagrams_out;
  return Seal(peers_[node].send_key, nullptr, &payload_key_, room, size);
}

std::size_t ClassicEndpoint::NextDatagram(Nanos now, MutableBytes room, Address& to) {
  for (std::uint32_t i = 0; i < config_.nodes; ++i) {
    const NodeId node = static_cast<NodeId>((turn_ + i) % config_.nodes);
    ClassicPeer& peer = peers_[node];
    to = peer.address;
    if (peer.nack_due) {
      peer.nack_due = peer.ack_due = false;
      ++counters_.nacks;
      return Write(node, Kind::kClassicNack, peer.expected, peer.full, {}, room);
    }
    if (peer.ack_due) {  // one for all that came since the last: Ack compression
      peer.ack_due = false;
      ++counters_.acks;
      return Write(node, Kind::kClassicAck, peer.expected, false, {}, room);
    }
    if (!MaySend(node)) continue;
    turn_ = node;
    if (peer.cursor == peer.base) peer.waiting_since = now;
    const std::size_t slot = SlotIndex(node, peer.cursor);
    if (peer.cursor != peer.highest) ++counters_.resent;
    const std::uint32_t number = peer.cursor++;
    if (Before(peer.highest, peer.cursor)) peer.highest = peer.cursor;
    return Write(node, Kind::kClassicData, number, false,
                 Buffer(send_buffers_, slot).first(send_slots_[slot].length), room);
  }
  turn_ = static_cast<NodeId>((turn_ + 1) % config_.nodes);
  return 0;
}

void ClassicEndpoint::OnTimer(Nanos now) {
  for (ClassicPeer& peer : peers_) {
    if (peer.base == peer.cursor || now - peer.waiting_since < config_.timeout) continue;
    peer.cursor = peer.base;  // S4
    peer.waiting_since = now;
    ++counters_.timeouts;
  }
}

Nanos ClassicEndpoint::NextDeadline() const {
  Nanos earliest = kNever;
  for (const ClassicPeer& peer : peers_) {
    if (peer.base != peer.cursor) {
      earliest = std::min(earliest, peer.waiting_since + config_.timeout);
    }
  }
  return earliest;
}

}  // namespace sekisho::pm
