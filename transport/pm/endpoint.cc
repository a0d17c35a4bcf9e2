// SPDX-License-Identifier: Apache-2.0
// The protocol core of PM: set-up, the application's calls, timers.
#include "transport/pm/endpoint.h"

#include <algorithm>
#include <bit>

namespace sekisho::pm {
namespace {

constexpr Nanos kFirstPersist = 20 * kMillisecond;

bool RingOk(std::uint32_t size) {
  return std::has_single_bit(size) && size >= 4096 && size <= kMessageMax;
}

bool ConfigOk(const Config& config) {
  return config.nodes >= 1 && config.node < config.nodes && config.channels >= 1 &&
         config.channels <= 256 && RingOk(config.send_ring) && RingOk(config.receive_ring) &&
         config.message_limit >= kMessagesBeforeCredit && config.packets >= 16 &&
         config.intervals >= 4 && config.datagram_max >= 1200 &&
         config.datagram_max <= kDatagramMax && config.incarnation != 0;
}

}  // namespace

void Endpoint::Cut(Arena& arena) {
  const std::size_t streams = std::size_t{config_.nodes} * config_.channels;
  peers_ = arena.Take<Peer>(config_.nodes);
  send_streams_ = arena.Take<SendStream>(streams);
  receive_streams_ = arena.Take<ReceiveStream>(streams);
  sent_items_ = arena.Take<Sent>(config_.packets);
  segment_items_ = arena.Take<Segment>(std::size_t{config_.packets} * 2 + config_.nodes);
  interval_items_ = arena.Take<Interval>(config_.intervals);
  heap_items_ = arena.Take<std::uint32_t>(config_.nodes);
  heap_positions_ = arena.Take<std::uint32_t>(config_.nodes);
  heap_deadlines_ = arena.Take<Nanos>(config_.nodes);
  send_rings_ = arena.Take<std::uint8_t>(streams * config_.send_ring);
  receive_rings_ = arena.Take<std::uint8_t>(streams * config_.receive_ring);
}

std::size_t Endpoint::MemoryNeeded(const Config& config) {
  if (!ConfigOk(config)) return 0;
  Endpoint measure;
  measure.config_ = config;
  Arena arena({});
  measure.Cut(arena);
  return arena.used();
}

std::error_code Endpoint::Init(const Config& config, MutableBytes memory, Cipher* cipher,
                               Nanos now) {
  if (!ConfigOk(config)) return Error::kBadConfig;
  config_ = config;
  cipher_ = cipher;
  now_ = now;
  Arena arena(memory);
  Cut(arena);
  if (memory.empty() || !arena.fits()) return Error::kNoMemory;
  sent_.Init(sent_items_);
  segments_.Init(segment_items_);
  intervals_.Init(interval_items_);
  deadlines_.Init(heap_items_, heap_positions_, heap_deadlines_);
  const SipKey seed = {config.seed, config.incarnation};
  cookie_key_ = SipHash128(seed, config.key);
  for (NodeId node = 0; node < config.nodes; ++node) {
    Peer& peer = peers_[node];
    peer.greeting_send = GreetingKey(config.key, {config.context, config.node, node, 0, 0});
    peer.greeting_receive = GreetingKey(config.key, {config.context, node, config.node, 0, 0});
  }
  return {};
}

std::error_code Endpoint::SetAddress(NodeId node, const Address& address) {
  if (node >= config_.nodes) return Error::kBadNode;
  peers_[node].address = address;
  return {};
}

std::error_code Endpoint::CheckCall(NodeId node, ChannelId channel) const {
  if (node >= config_.nodes || node == config_.node) return Error::kBadNode;
  if (channel >= config_.channels) return Error::kBadChannel;
  return {};
}

std::error_code Endpoint::Begin(NodeId node, ChannelId channel, std::uint32_t length, Nanos now) {
  Clock(now);
  if (const auto error = CheckCall(node, channel)) return error;
  if (length > kMessageMax) return Error::kTooLong;
  Peer& peer = peers_[node];
  if (peer.state == PeerState::kGone) return Error::kPeerGone;
  const std::uint32_t stream = StreamIndex(node, channel);
  SendStream& out = send_streams_[stream];
  if (out.part_left > 0) return Error::kBadSequence;
  if (!out.Begin(SendRing(stream), length, 0)) return Error::kWouldBlock;
  ++counters_.messages_out;
  if (peer.state == PeerState::kUnknown) StartGreeting(peer);
  Work(peer);
  return {};
}

std::size_t Endpoint::Append(NodeId node, ChannelId channel, Bytes part, Nanos now) {
  Clock(now);
  if (CheckCall(node, channel) || peers_[node].state == PeerState::kGone) return 0;
  const std::uint32_t stream = StreamIndex(node, channel);
  SendStream& out = send_streams_[stream];
  if (out.part_left == 0) return 0;
  const std::uint32_t taken = out.Append(SendRing(stream), part);
  Work(peers_[node]);
  return taken;
}

std::error_code Endpoint::Room(NodeId node, ChannelId channel, std::size_t length) const {
  if (const auto error = CheckCall(node, channel)) return error;
  const std::uint64_t needed = kMessageHeadSize + Padded(length);
  if (needed > config_.send_ring) return Error::kTooLong;
  if (peers_[node].state == PeerState::kGone) return Error::kPeerGone;
  const SendStream& out = send_streams_[StreamIndex(node, channel)];
  if (out.part_left > 0) return Error::kBadSequence;
  const bool fits = out.messages < out.message_limit && out.room(config_.send_ring) >= needed;
  return fits ? std::error_code() : Error::kWouldBlock;
}

std::error_code Endpoint::Send(NodeId node, ChannelId channel, Bytes message, Nanos now) {
  if (const auto error = Room(node, channel, message.size())) return error;
  if (const auto error = Begin(node, channel, static_cast<std::uint32_t>(message.size()), now)) {
    return error;
  }
  const std::uint32_t stream = StreamIndex(node, channel);
  send_streams_[stream].Append(SendRing(stream), message);
  return {};
}

void Endpoint::MakeReady(std::uint32_t stream) {
  ReceiveStream& in = receive_streams_[stream];
  if (in.ready || in.open) return;
  switch (in.Peek(ReceiveRing(stream))) {
    case ReceiveStream::Look::kNothing:
      if (in.Starved(ReceiveRing(stream))) {
        in.credit_due = true;
        Work(peers_[stream / config_.channels]);
      }
      return;
    case ReceiveStream::Look::kBroken:
      if (peers_[stream / config_.channels].state != PeerState::kGone) {
        ++counters_.violations;
        Gone(peers_[stream / config_.channels], Reason::kViolation);
      }
      return;
    case ReceiveStream::Look::kMessage:
    case ReceiveStream::Look::kPiece:
      in.ready = true;
      ready_.PushBack(receive_streams_, stream);
  }
}

bool Endpoint::Receive(Message& message) {
  if (ready_.empty()) return false;
  const std::uint32_t stream = ready_.first;
  ReceiveStream& in = receive_streams_[stream];
  ready_.Remove(receive_streams_, stream);
  in.ready = false;
  message.source = static_cast<NodeId>(stream / config_.channels);
  message.channel = static_cast<ChannelId>(stream % config_.channels);
  message.bytes = in.Open(ReceiveRing(stream), message.more);
  if (!message.more) ++counters_.messages_in;
  return true;
}

std::error_code Endpoint::Release(NodeId node, ChannelId channel, Nanos now) {
  Clock(now);
  if (const auto error = CheckCall(node, channel)) return error;
  const std::uint32_t stream = StreamIndex(node, channel);
  ReceiveStream& in = receive_streams_[stream];
  if (!in.open) return Error::kBadSequence;
  in.Release();
  MakeReady(stream);
  Peer& peer = peers_[node];
  if (peer.has_session && peer.state != PeerState::kGone &&
      (in.consumed + config_.receive_ring - in.byte_limit >= config_.receive_ring / 4 ||
       in.messages + config_.message_limit - in.message_limit >= config_.message_limit / 4)) {
    in.credit_due = true;
    Work(peer);
  }
  return {};
}

std::error_code Endpoint::Close(NodeId node, Nanos now) {
  Clock(now);
  if (const auto error = CheckCall(node, 0)) return error;
  if (peers_[node].state != PeerState::kGone) Gone(peers_[node], Reason::kLeft);
  return {};
}

bool Endpoint::Drained(NodeId node) const {
  for (std::size_t channel = 0; channel < config_.channels; ++channel) {
    const SendStream& out = send_streams_[StreamIndex(node, channel)];
    if (out.acked != out.written || out.part_left > 0) return false;
  }
  return true;
}

void Endpoint::Work(Peer& peer) {
  if (peer.in_work) return;
  peer.in_work = true;
  work_.PushBack(peers_, IdOf(peer));
}

// Data that waits for credit while nothing is in flight would not notice that the peer died.
void Endpoint::WatchCredit(Peer& peer) {
  const bool can_wait = peer.has_session && peer.state != PeerState::kGone;
  if (!can_wait || !HasUnsent(peer)) {
    peer.persist_at = kNever;
    peer.persist_tries = 0;
  } else if (peer.in_flight_packets > 0) {
    peer.persist_at = kNever;
  } else if (peer.persist_at == kNever) {
    peer.persist_at = now_ + std::min(kFirstPersist << peer.persist_tries, kSecond);
  }
}

void Endpoint::Reschedule(Peer& peer) {
  WatchCredit(peer);
  Nanos when = std::min({peer.greet_deadline, peer.ack_deadline, peer.loss_deadline,
                         peer.persist_at, ProbeDeadline(peer)});
  if (peer.hold_until > now_) when = std::min(when, peer.hold_until);
  if (peer.starved) when = std::min(when, now_ + kMillisecond);
  if (peer.has_session && peer.next_send > now_ && peer.state != PeerState::kGone &&
      HasSomethingToSay(peer)) {
    when = std::min(when, peer.next_send);
  }
  deadlines_.Set(IdOf(peer), when);
}

void Endpoint::OnTimer(Nanos now) {
  Clock(now);
  while (deadlines_.earliest() <= now_) {
    Peer& peer = peers_[deadlines_.first()];
    if (peer.greet_deadline <= now_) GreetTimeout(peer);
    if (peer.ack_deadline <= now_) {
      peer.ack_now = true;
      peer.ack_deadline = kNever;
    }
    if (peer.loss_deadline <= now_) DetectLosses(peer);
    if (ProbeDeadline(peer) <= now_) OnProbeTimeout(peer);
    if (peer.persist_at <= now_) {
      peer.persist_at = kNever;
      peer.persist_tries = std::min<std::uint8_t>(peer.persist_tries + 1, 8);
      peer.probe_due = true;
    }
    if (peer.hold_until <= now_) peer.hold_until = 0;  // expired: send what there is
    peer.starved = false;
    // Sending renews the other deadlines; until then this one must not come up again.
    deadlines_.Set(IdOf(peer), kNever);
    Work(peer);
  }
}

// All that waits for the peer's acknowledgement, and what was learned of the path with it.
void Endpoint::ForgetFlight(Peer& peer) {
  for (SentList* list : {&peer.sent, &peer.lost}) {
    while (!list->empty()) {
      const std::uint32_t index = list->first;
      list->Remove(sent_, index);
      sent_.Put(index);
    }
  }
  peer.lost_segments = {};
  for (std::size_t channel = 0; channel < config_.channels; ++channel) {
    const std::uint32_t stream = StreamIndex(IdOf(peer), channel);
    SendStream& out = send_streams_[stream];
    while (out.first != kNil) {
      const std::uint32_t next = segments_[out.first].next;
      segments_.Put(out.first);
      out.first = next;
    }
    out.last = kNil;
    receive_streams_[stream].FreeIntervals(intervals_);
  }
  peer.in_flight = 0;
  peer.in_flight_packets = 0;
  peer.in_flight_small = 0;
  peer.mtu_in_flight = false;
  granted_beyond_ -= Beyond(peer);
  peer.granted = peer.received;
  peer.bulk = false;
  if (peer.in_grants) grants_.Remove(peers_, IdOf(peer));
  peer.in_grants = false;
  peer.want = 0;
}

void Endpoint::Gone(Peer& peer, Reason reason) {
  ForgetFlight(peer);
  peer.state = PeerState::kGone;
  peer.reason = reason;
  peer.greet = Peer::Greet::kNone;
  peer.greet_due = false;
  peer.greet_deadline = peer.ack_deadline = peer.loss_deadline = peer.hold_until = kNever;
  peer.persist_at = kNever;
  peer.ack_now = peer.probe_due = peer.grant_due = peer.starved = false;
  peer.unacknowledged = 0;
  peer.close_due = peer.has_session && reason != Reason::kClosed && reason != Reason::kSilent;
  Work(peer);
  AllotGrants();
}

}  // namespace sekisho::pm
