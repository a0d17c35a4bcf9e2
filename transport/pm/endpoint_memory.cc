// SPDX-License-Identifier: Apache-2.0
// The memory of an endpoint: how it is cut, and what can be saved of it when its owner was killed
// or stopped in the middle of anything.  docs/protocol/9-pm.md, "Two drivers".
#include <algorithm>
#include <bit>

#include "transport/pm/endpoint.h"

namespace sekisho::pm {
namespace {

// Numbers that the lost owner may have used after we looked.
constexpr std::uint64_t kNumberGap = 2 * kNumbersInFlight;

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

void Endpoint::Cut(Arena& area, Arena& rings) {
  const std::size_t streams = std::size_t{config_.nodes} * config_.channels;
  const std::span<State> state = area.Take<State>(1);
  state_ = state.data();
  peers_ = area.Take<Peer>(config_.nodes);
  sessions_ = area.Reserve<Session>(config_.nodes);
  window_bits_ = area.Reserve<ReceiveWindow::Bits>(config_.nodes);
  send_streams_ = area.Take<SendStream>(streams);
  receive_streams_ = area.Take<ReceiveStream>(streams);
  sent_items_ = area.Reserve<Sent>(config_.packets);
  segment_items_ = area.Reserve<Segment>(std::size_t{config_.packets} * 2 + config_.nodes);
  interval_items_ = area.Reserve<Interval>(config_.intervals);
  const std::span<std::uint32_t> heap = area.Reserve<std::uint32_t>(config_.nodes);
  const std::span<std::uint32_t> positions = area.Reserve<std::uint32_t>(config_.nodes);
  const std::span<Nanos> times = area.Reserve<Nanos>(config_.nodes);
  if (state_ != nullptr) deadlines_.Attach(heap, positions, times, state_->deadlines);
  send_rings_ = rings.Reserve<std::uint8_t>(streams * config_.send_ring);
  receive_rings_ = rings.Reserve<std::uint8_t>(streams * config_.receive_ring);
}

std::size_t Endpoint::AreaNeeded(const Config& config) {
  if (!ConfigOk(config)) return 0;
  Endpoint measure;
  measure.config_ = config;
  Arena area({}), rings({});
  measure.Cut(area, rings);
  return area.used();
}

std::size_t Endpoint::RingsNeeded(const Config& config) {
  if (!ConfigOk(config)) return 0;
  Endpoint measure;
  measure.config_ = config;
  Arena area({}), rings({});
  measure.Cut(area, rings);
  return rings.used();
}

std::size_t Endpoint::MemoryNeeded(const Config& config) {
  return AreaNeeded(config) + RingsNeeded(config);
}

std::error_code Endpoint::Place(const Config& config, MutableBytes area, MutableBytes rings,
                                Arena::Mode mode) {
  if (!ConfigOk(config)) return Error::kBadConfig;
  config_ = config;
  Arena area_arena(area, mode), rings_arena(rings, mode);
  if (area.size() < AreaNeeded(config) || rings.size() < RingsNeeded(config)) {
    return Error::kNoMemory;
  }
  Cut(area_arena, rings_arena);
  payload_key_ = MakePayloadKey(config.key);
  return {};
}

std::error_code Endpoint::Attach(const Config& config, MutableBytes area, MutableBytes rings) {
  if (const auto error = Place(config, area, rings, Arena::Mode::kAttach)) return error;
  cipher_ = nullptr;
  sent_.Attach(sent_items_, state_->sent);
  segments_.Attach(segment_items_, state_->segments);
  intervals_.Attach(interval_items_, state_->intervals);
  return {};
}

std::error_code Endpoint::Init(const Config& config, MutableBytes memory, Cipher* cipher,
                               Nanos now) {
  const std::size_t area = AreaNeeded(config);
  if (area == 0) return Error::kBadConfig;
  if (memory.size() < area) return Error::kNoMemory;
  return Init(config, memory.first(area), memory.subspan(area), cipher, now);
}

std::error_code Endpoint::Init(const Config& config, MutableBytes area, MutableBytes rings,
                               Cipher* cipher, Nanos now) {
  if (const auto error = Place(config, area, rings, Arena::Mode::kMake)) return error;
  cipher_ = cipher;
  state_->now = now;
  sent_.Init(sent_items_, state_->sent);
  segments_.Init(segment_items_, state_->segments);
  intervals_.Init(interval_items_, state_->intervals);
  deadlines_.Init();
  const SipKey seed = {config.seed, config.incarnation};
  state_->cookie_key = SipHash128(seed, config.key);
  for (NodeId node = 0; node < config.nodes; ++node) {
    Peer& peer = peers_[node];
    peer.greeting_send = GreetingKey(config.key, {config.context, config.node, node, 0, 0});
    peer.greeting_receive = GreetingKey(config.key, {config.context, node, config.node, 0, 0});
  }
  return {};
}

void Endpoint::RebuildSend(const SendStream& from, SendStream& out) {
  out.base = from.base;
  out.acked = Once(from.acked);
  out.written = Once(from.written);
  if (out.written < out.acked || out.written - out.acked > config_.send_ring) Spoiled();
  out.cut = out.acked;  // what was in flight is sent again
  out.byte_limit = from.byte_limit;
  out.message_limit = from.message_limit;
  out.messages = from.messages;
  out.part_left = from.part_left;
}

// Returns the bytes that arrived, each once.
std::uint64_t Endpoint::RebuildReceive(const Endpoint& torn, const ReceiveStream& from,
                                       ReceiveStream& in) {
  in.base = from.base;
  in.consumed = Once(from.consumed);
  in.contiguous = Once(from.contiguous);
  const std::uint64_t end = in.consumed + config_.receive_ring;
  if (in.contiguous < in.consumed || in.contiguous > end || in.consumed % 8 != 0) Spoiled();
  in.byte_limit = from.byte_limit;
  in.message_limit = from.message_limit;
  in.messages = from.messages;
  in.in_pieces = from.in_pieces;
  in.piece_left = from.piece_left;
  in.credit_due = true;
  // A run that is being joined may be there twice, or below `contiguous` already.
  std::uint64_t fresh = 0, beyond = 0;
  std::size_t left = torn.intervals_.size();
  for (std::uint32_t i = from.interval; i != kNil && left > 0;
       i = torn.intervals_[i].next, --left) {
    const std::uint64_t low = Once(torn.intervals_[i].low), high = Once(torn.intervals_[i].high);
    if (low >= high || high > end || high <= in.contiguous) continue;
    if (low <= in.contiguous) {
      in.contiguous = high;
    } else if (!in.AddInterval(intervals_, low, high, fresh)) {
      Spoiled();
    } else {
      beyond += fresh;
      fresh = 0;
    }
  }
  in.opened = Once(from.opened);
  if (in.opened < in.consumed || in.opened > in.contiguous) in.opened = in.consumed;
  return in.contiguous + beyond;
}

void Endpoint::RebuildPeer(const Endpoint& torn, NodeId node) {
  const Peer& from = torn.peers_[node];
  const Session& had = torn.sessions_[node];
  Peer& peer = peers_[node];
  Session& session = sessions_[node];
  peer.has_session = from.has_session;
  Publish();
  if (peer.has_session) {
    session = Session();
    // The window first: what is marked in it has been stored, and so is found below.
    session.window = had.window;
    if (session.window.has_bits()) window_bits_[node] = torn.window_bits_[node];
    Publish();
  }
  peer.address = from.address;
  peer.session = from.session;
  peer.reason = from.reason;
  peer.is_awaited = from.is_awaited;
  peer.gang = Bounded(from.gang, state_->gang.wave);
  peer.lost_by_gap = from.lost_by_gap;
  peer.lost_by_timeout = from.lost_by_timeout;
  bool waiting = false;
  std::uint64_t received = 0, sent = 0;
  for (std::size_t channel = 0; channel < config_.channels; ++channel) {
    const std::uint32_t stream = StreamIndex(node, channel);
    const SendStream& old = torn.send_streams_[stream];
    // Of a session that just ended.
    if (!peer.has_session && (old.cut > 0 || old.acked > 0)) continue;
    RebuildSend(old, send_streams_[stream]);
    sent += send_streams_[stream].acked;
    waiting = waiting || send_streams_[stream].written > send_streams_[stream].acked;
    if (!peer.has_session) continue;
    received += RebuildReceive(torn, torn.receive_streams_[stream], receive_streams_[stream]);
  }
  if (from.state == PeerState::kGone) {
    peer.state = PeerState::kGone;
    peer.incarnation = from.incarnation;
    peer.close_due = from.close_due;
  }
  if (!peer.has_session) {
    if (peer.state != PeerState::kGone && (waiting || from.state == PeerState::kGreeting)) {
      StartGreeting(peer);
    }
    return;
  }
  peer.incarnation = from.incarnation;
  session.session_send = had.session_send;
  session.session_receive = had.session_receive;
  session.next_number = had.next_number + kNumberGap;
  peer.confirmed = from.confirmed;
  session.rtt = had.rtt;
  WatchRings(session);
  session.congestion.Init(config_.fixed_window, session.mtu, state_->now);
  session.reorder_calm = session.largest_time = state_->now;
  session.ce_seen = had.ce_seen;
  session.ce_count = had.ce_count;
  session.new_bytes = sent;
  session.grant_limit = had.grant_limit;
  session.received = received;
  session.granted = std::max(had.granted, received);
  if (peer.state == PeerState::kGone) {
    if (peer.close_due) Work(peer);
  } else {
    peer.state = PeerState::kUp;
    session.grant_due = true;
    peer.gang_due = state_->gang_active;
    if (from.greet == Peer::Greet::kAnswer) {
      peer.nonce = from.nonce;
      peer.cookie = from.cookie;
      peer.greet = Peer::Greet::kAnswer;
      peer.greet_due = true;
    }
    if (session.window.largest() > 0) {
      session.unacknowledged = 1;
      session.ack_now = true;
    }
    session.want = static_cast<std::uint32_t>(std::min<std::uint64_t>(Once(had.want), kWantMax));
    if (session.want > 0) {
      session.in_grants = true;
      state_->grants.PushBack(sessions_, node);
    }
    Work(peer);
  }
  for (std::size_t channel = 0; channel < config_.channels; ++channel) {
    MakeReady(StreamIndex(node, channel));
  }
}

void Endpoint::Rebuild(const Endpoint& torn) {
  RebuildGang(torn);
  state_->counters = torn.state_->counters;
  state_->cookie_key = torn.state_->cookie_key;
  state_->nonce_counter = torn.state_->nonce_counter + kNumberGap;
  for (NodeId node = 0; node < config_.nodes; ++node) {
    if (node != config_.node) RebuildPeer(torn, node);
  }
  AllotGrants();
  if (state_->gang_active) StepGang();
}

void Endpoint::DropOpen() {
  for (std::uint32_t stream = 0; stream < receive_streams_.size(); ++stream) {
    if (receive_streams_[stream].is_open()) SetOpened(stream, receive_streams_[stream].consumed);
  }
}

void Endpoint::Hold(NodeId node, ChannelId channel, std::uint64_t end) {
  const std::uint32_t stream = StreamIndex(node, channel);
  const ReceiveStream& in = receive_streams_[stream];
  if (end > in.consumed && end <= in.contiguous) SetOpened(stream, end);
}

void Endpoint::SetOpened(std::uint32_t stream, std::uint64_t end) {
  ReceiveStream& in = receive_streams_[stream];
  if (in.ready) state_->ready.Remove(receive_streams_, stream);
  in.ready = false;
  in.opened = end;
  MakeReady(stream);
}

// No byte of them counts: nothing is unsent, unacknowledged, unread or held.
bool Endpoint::HasEmptyRings(const Peer& peer) const {
  for (std::size_t channel = 0; channel < config_.channels; ++channel) {
    const std::uint32_t stream = StreamIndex(IdOf(peer), channel);
    const SendStream& out = send_streams_[stream];
    const ReceiveStream& in = receive_streams_[stream];
    if (out.acked != out.written || out.part_left > 0) return false;
    if (in.consumed != in.contiguous || in.interval != kNil) return false;
  }
  return true;
}

void Endpoint::LookAtRings(Peer& peer) {
  Session& session = SessionOf(peer);
  session.rings_at = kNever;
  if (forget_ == nullptr) return;
  if (std::max(session.last_eliciting, session.largest_time) + kRingsIdle > state_->now) {
    return WatchRings(session);
  }
  // Where nothing comes or leaves, only the application can empty them: Release looks again.
  if (!HasEmptyRings(peer)) return;
  const std::size_t first = StreamIndex(IdOf(peer), 0), count = config_.channels;
  forget_(send_rings_.subspan(first * config_.send_ring, count * config_.send_ring));
  forget_(receive_rings_.subspan(first * config_.receive_ring, count * config_.receive_ring));
}

void Endpoint::DropParts() {
  for (SendStream& out : send_streams_) out.part_left = 0;
}

}  // namespace sekisho::pm
