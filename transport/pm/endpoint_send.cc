// SPDX-License-Identifier: Apache-2.0
// What goes into the next datagram.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "transport/pm/draft.h"

namespace sekisho::pm {
namespace {

constexpr std::uint32_t kBurst = 64'000;  // bytes in a row to one peer: one segmentation offload
// With so many packets in flight that could have carried more, small messages are packed.
constexpr std::uint32_t kSmallInFlight = 4;
constexpr std::size_t kSmallRoom = 64;  // bytes
constexpr std::uint64_t kStreaming = 128 * 1024;
constexpr std::uint64_t kShortTrain = 16 * 1024;
constexpr std::uint8_t kHopeless = 3;  // time-outs in a row

std::size_t DataFrameSize(std::size_t channel, std::uint64_t offset, std::size_t length) {
  return 1 + VarintSize(channel) + VarintSize(offset) + VarintSize(length);
}

}  // namespace

bool Endpoint::NextOutgoing(Nanos now, MutableBytes room, Outgoing& out) {
  built_for_ = kNil;
  built_probe_ = false;
  out.size = NextDatagram(now, room, out.to);
  out.node = built_for_;
  out.is_probe = built_probe_;
  return out.size > 0;
}

std::size_t Endpoint::NextDatagram(Nanos now, MutableBytes room, Address& to) {
  Clock(now);
  std::size_t size = 0;
  if (state_->reply_count > 0) {
    constexpr auto kReplies =
        static_cast<std::uint32_t>(std::tuple_size<decltype(state_->replies)>());
    const std::uint32_t first = Once(state_->reply_first) % kReplies;
    const Reply& reply = state_->replies[first];
    state_->reply_first = (first + 1) % kReplies;
    --state_->reply_count;
    to = reply.to;
    size = WriteGreetingPacket(reply.kind, peers_[reply.node], reply.greeting, room);
  }
  while (size == 0 && !state_->work.empty()) {
    Peer& peer = peers_[state_->work.first];
    to = peer.address;
    size = Build(peer, room);
    built_for_ = IdOf(peer);
    const bool alone = state_->work.first == state_->work.last;
    state_->burst += static_cast<std::uint32_t>(size);
    if (size == 0 || (state_->burst >= kBurst && !alone)) {
      state_->work.Remove(peers_, IdOf(peer));
      peer.in_work = false;
      state_->burst = 0;
      if (size > 0) Work(peer);  // behind the others
      Reschedule(peer);
    }
  }
  if (size > 0) {
    ++state_->counters.datagrams_out;
    state_->counters.bytes_out += size;
  }
  return size;
}

std::uint64_t Endpoint::Floor(const Session& session) const {
  std::uint64_t floor = session.next_number;
  if (!session.sent.empty()) floor = std::min(floor, sent_[session.sent.first].number);
  if (!session.lost.empty()) floor = std::min(floor, sent_[session.lost.first].number);
  return floor;
}

bool Endpoint::MaySend(Session& session) {
  if (sent_.free_count() == 0) {
    for (Peer& other : peers_) {
      if (other.has_session) ForgetLost(SessionOf(other));
    }
  }
  if (sent_.free_count() == 0 && session.timeouts < kHopeless) {
    // From whom nothing is heard; the last one in flight keeps his time-outs going.
    for (Peer& other : peers_) {
      if (other.has_session && SessionOf(other).timeouts >= kHopeless) GiveUpFlight(other, 1);
    }
  }
  if (sent_.free_count() == 0) {
    if (!session.starved) ++state_->counters.no_packet_record;
    session.starved = true;
    return false;
  }
  if (session.next_number - Floor(session) >= kNumbersInFlight) {
    ForgetLost(session);
    if (session.next_number - Floor(session) >= kNumbersInFlight) return false;
  }
  if (session.probe_due) return true;
  return session.in_flight < session.congestion.window() && session.paced_until <= state_->now;
}

// Whether what there is waits a moment for more, as enough is on its way: a packet that would not
// be full, or the end of a message that would leave as a short train behind long ones.
bool Endpoint::Hold(Session& session, std::uint64_t backlog, std::size_t room) {
  const bool small = session.in_flight_small >= kSmallInFlight && backlog < room;
  const bool streams = session.in_flight >= kStreaming && backlog < kShortTrain;
  if (!small && !streams) {
    session.hold_until = kNever;
    return false;
  }
  if (session.hold_until == kNever) {
    session.hold_until =
        state_->now + std::clamp(session.rtt.smoothed() / 4, 10 * kMicrosecond, 100 * kMicrosecond);
    ++state_->counters.held_small;
  }
  return session.hold_until > state_->now;
}

std::size_t Endpoint::Build(Peer& peer, MutableBytes room) {
  Session& session = SessionOf(peer);
  if (peer.greet_due) return BuildGreeting(peer, room);
  const std::size_t overhead = kHeaderSize + kFloorRoom + TagSize(cipher_);
  if (!peer.has_session || peer.is_replaced || room.size() < overhead + 64) return 0;
  const std::size_t mtu = std::clamp<std::size_t>(Once(session.mtu), kDatagramBase, kDatagramMax);
  const std::size_t limit = std::min(mtu, room.size()) - overhead;
  if (peer.state == PeerState::kGone) return BuildClose(peer, room, limit);
  // Which may mean that nobody has time any more.
  if (!session.lost.empty()) ForgetLost(session);
  const bool may_send = MaySend(session);
  if (!may_send && !session.ack_now) return 0;
  const std::uint64_t backlog = may_send ? Backlog(peer) : 0;
  const bool control_only = backlog == 0 && session.lost_segments.empty() && !session.probe_due;
  if (control_only && !session.grant_now && !peer.gang_due && !session.ack_now) {
    // Credits and grants alone wait for the acknowledgement that is due soon, or an answer before.
    if (session.ack_deadline != kNever) return 0;
    if (!HasSomethingToSay(peer)) {  // then what AddControl and AddNew would note is all
      session.want_reported = 0;
      if (!Hold(session, 0, limit)) session.congestion.OnAppLimited(session.in_flight);
      return 0;
    }
  }
  if (may_send && backlog > session.mtu && !session.probe_due) {
    if (const std::size_t size = BuildMtuProbe(peer, room)) return size;
  }
  Draft draft(room, limit);
  if (may_send) AddLost(session, draft);
  AddAck(peer, draft);
  if (may_send) {
    AddControl(peer, draft, backlog);
    if (draft.eliciting || session.probe_due || !Hold(session, backlog, draft.room())) {
      AddNew(peer, draft, backlog);
    }
    if (session.probe_due && !draft.eliciting) draft.eliciting = draft.writer.Ping();
  }
  if (!draft.eliciting && !(draft.acks && session.ack_now)) return 0;
  return Finish(peer, draft, room);
}

std::size_t Endpoint::BuildClose(Peer& peer, MutableBytes room, std::size_t limit) {
  if (!peer.close_due) return 0;
  peer.close_due = false;
  Draft draft(room, limit);
  draft.writer.One(FrameKind::kClose, static_cast<std::uint64_t>(peer.reason));
  return Finish(peer, draft, room);
}

void Endpoint::AddAck(Peer& peer, Draft& draft) {
  Session& session = SessionOf(peer);
  if (session.unacknowledged == 0) return;
  std::array<NumberRange, kAckRangesMax> ranges;
  const std::size_t count = session.window.Ranges(ranges, BitsOf(peer));
  if (count == 0) return;
  const auto delay_us =
      static_cast<std::uint64_t>((state_->now - session.largest_time) / kMicrosecond);
  draft.acks = draft.writer.Ack(std::span(ranges).first(count), delay_us, session.ce_count);
}

void Endpoint::AddControl(Peer& peer, Draft& draft, std::uint64_t backlog) {
  Session& session = SessionOf(peer);
  const std::span streams = receive_streams(IdOf(peer));
  for (std::size_t channel = 0; channel < streams.size(); ++channel) {
    ReceiveStream& in = streams[channel];
    if (!in.credit_due) continue;
    const std::uint64_t bytes = in.consumed + config_.receive_ring;
    const std::uint64_t messages = in.messages + config_.message_limit;
    if (!draft.writer.Credit(channel, bytes, messages)) continue;
    in.byte_limit = bytes;
    in.message_limit = messages;
    in.credit_due = false;
    draft.carried |= kCarriedCredit;
  }
  if (session.grant_due && draft.writer.One(FrameKind::kGrant, session.granted)) {
    draft.grants = true;
    // Where nothing is lost nobody needs to hear that it arrived, if nobody waits for it.
    if (session.grant_now || !IsCalm(session)) draft.carried |= kCarriedGrant;
  }
  const std::uint64_t granted = session.grant_limit - session.new_bytes;
  if (backlog > granted) {
    const std::uint64_t window = std::max<std::uint64_t>(session.congestion.window(), 64 * 1024);
    const std::uint64_t want = std::min(backlog - granted, window);
    const bool stale = session.want_reported == 0 ||
                       session.grant_limit - session.want_base >= session.want_reported / 2;
    if (stale && draft.writer.One(FrameKind::kWant, want)) {
      session.want_reported = static_cast<std::uint32_t>(want);
      session.want_base = session.grant_limit;
      draft.carried |= kCarriedWant;
    }
  } else {
    session.want_reported = 0;
  }
  if (peer.gang_due && draft.writer.Gang(state_->gang)) {
    peer.gang_due = false;
    draft.carried |= kCarriedGang;
  }
  draft.eliciting = draft.eliciting || draft.carried != 0;
}

bool Endpoint::SplitSegment(std::uint32_t index, std::uint32_t length) {
  const std::uint32_t rest = segments_.Get();
  if (rest == kNil) return false;
  Segment& whole = segments_[index];
  Segment& second = segments_[rest];
  const std::uint32_t generation = second.generation;
  second = whole;
  second.generation = generation + 1;
  second.offset += length;
  second.length -= length;
  whole.length = length;
  whole.next = rest;
  SendStream& out = send_streams_[whole.stream];
  if (out.last == index) out.last = rest;
  ++state_->counters.cut_smaller;
  return true;
}

// Bytes of a lost segment that fit into the packet; less than its length only if it may be cut. The
// last records are kept for the first segments of streams: acknowledged they are free again, others
// might not be.
std::uint32_t Endpoint::Fitting(const Draft& draft, std::uint32_t index) const {
  const Segment& segment = segments_[index];
  const std::size_t frame =
      DataFrameSize(segment.stream % config_.channels, segment.offset, segment.length);
  if (draft.room() < frame + 1) return 0;
  const std::size_t room = draft.room() - frame;
  if (segment.length <= room) return segment.length;
  const bool scarce = segments_.free_count() <= config_.nodes;
  const bool may_cut = draft.segment_count == 0 && segments_.free_count() > 0 &&
                       (!scarce || send_streams_[segment.stream].first == index);
  return may_cut ? static_cast<std::uint32_t>(room) : 0;
}

// Data that was lost goes first, the oldest loss before the others.
void Endpoint::AddLost(Session& session, Draft& draft) {
  while (!session.lost_segments.empty() && draft.segment_count < kSegmentsPerPacket) {
    std::uint32_t index = session.lost_segments.first;
    std::uint32_t length = Fitting(draft, index);
    while (length == 0 && draft.segment_count == 0 && segments_[index].lost_next != kNil) {
      index = segments_[index].lost_next;  // this one waits for a record
      length = Fitting(draft, index);
    }
    if (length == 0) {
      session.starved = session.starved || draft.segment_count == 0;
      return;
    }
    const bool split = length < segments_[index].length;
    if (split && !SplitSegment(index, length)) return;
    Segment& segment = segments_[index];
    if (!draft.writer.Data(segment.stream % config_.channels, segment.offset, length)) Spoiled();
    draft.AddSegment(index, length);
    draft.eliciting = true;
    session.lost_segments.Remove(segments_, index);
    segment.state = Segment::State::kInFlight;
    if (split) session.lost_segments.PushFront(segments_, segment.next);
    ++state_->counters.retransmitted;
  }
}

void Endpoint::AddNew(Peer& peer, Draft& draft, std::uint64_t backlog) {
  Session& session = SessionOf(peer);
  if (paused()) return session.congestion.OnAppLimited(session.in_flight);
  const auto next = [this](std::uint32_t channel) {
    return channel + 1 < config_.channels ? channel + 1 : 0;
  };
  std::uint32_t channel = Once(session.next_channel);
  if (channel >= config_.channels) Spoiled();
  for (std::uint32_t i = 0; i < config_.channels; ++i, channel = next(channel)) {
    if (draft.segment_count == kSegmentsPerPacket) break;
    const std::uint32_t stream = StreamIndex(IdOf(peer), channel);
    SendStream& out = send_streams_[stream];
    const std::size_t frame = DataFrameSize(channel, out.cut, draft.room());
    if (draft.room() < frame + 1) break;
    const std::uint64_t length = std::min({out.sendable(), session.grant_limit - session.new_bytes,
                                           static_cast<std::uint64_t>(draft.room() - frame)});
    if (length == 0) continue;
    if (segments_.free_count() <= config_.nodes) {
      session.starved = true;
      break;
    }
    if (!draft.writer.Data(channel, out.cut, length)) break;  // behind many credits
    const std::uint32_t index = segments_.Get();
    Segment& segment = segments_[index];
    const std::uint32_t generation = segment.generation;
    segment = Segment{};
    segment.generation = generation + 1;
    segment.offset = out.cut;
    segment.length = static_cast<std::uint32_t>(length);
    segment.stream = stream;
    (out.last == kNil ? out.first : segments_[out.last].next) = index;
    out.last = index;
    draft.AddSegment(index, static_cast<std::uint32_t>(length));
    draft.eliciting = true;
    out.cut += length;
    backlog -= length;
    session.new_bytes += length;
    session.next_channel = static_cast<std::uint16_t>(next(channel));
  }
  if (backlog == 0) session.congestion.OnAppLimited(session.in_flight);
}

// Whether the peer may keep the acknowledgement back until it has data to send it with.  Nobody may
// wait for it: not we for room in the window or the ring, and not for a loss, of which there are
// none.
bool Endpoint::HasTime(const Session& session, const Draft& draft) const {
  if (!draft.eliciting || session.probe_due || session.timeouts > 0 || !IsCalm(session)) {
    return false;
  }
  // A report or a wave alone: it is answered soon by the next.
  if (draft.carried == kCarriedGang && draft.segment_count == 0) return true;
  if (draft.carried != 0 || draft.segment_count == 0 || paused()) return false;
  if (2 * (session.in_flight + draft.writer.size() + draft.payload) > session.congestion.window())
    return false;
  for (std::size_t i = 0; i < draft.segment_count; ++i) {
    const SendStream& out = send_streams_[segments_[draft.segments[i]].stream];
    if (out.written - out.acked > config_.send_ring / 4) return false;
  }
  return true;
}

// Header, control part, payload and tag.
std::size_t Endpoint::Assemble(Peer& peer, const Draft& draft, std::uint64_t number, bool has_time,
                               MutableBytes room) {
  Session& session = SessionOf(peer);
  const std::size_t control = draft.writer.size();
  const int flags = (has_time ? kFlagNoHurry : 0) | (session.follows_probe ? kFlagAfterProbe : 0);
  WriteHeader({Kind::kData, static_cast<std::uint8_t>(flags), config_.context, config_.node,
               IdOf(peer), number, static_cast<std::uint16_t>(control)},
              room.first<kHeaderSize>());
  std::size_t size = kHeaderSize + control;
  Bytes payload = room.subspan(size, draft.payload);
  for (std::size_t i = 0; i < draft.segment_count; ++i) {
    Segment& segment = segments_[draft.segments[i]];
    segment.last_number = number;
    const std::uint64_t place = send_streams_[segment.stream].Place(segment.offset);
    const Pieces data = RingRead(SendRing(segment.stream), place, draft.lengths[i]);
    std::memcpy(room.data() + size, data.first.data(), data.first.size());
    size += data.first.size();
    if (!data.second.empty()) {
      std::memcpy(room.data() + size, data.second.data(), data.second.size());
      size += data.second.size();
    }
    if (data.first.size() == payload.size()) payload = data.first;  // all of it, in one piece
  }
  if (draft.padding > 0) std::memset(room.data() + size, 0, draft.padding);
  const PayloadKey* key = config_.payload_tag ? &payload_key_ : nullptr;
  return Seal(session.session_send, cipher_, key, room, size + draft.padding, payload);
}

// Numbers, assembles, seals and remembers the packet.
std::size_t Endpoint::Finish(Peer& peer, Draft& draft, MutableBytes room) {
  Session& session = SessionOf(peer);
  const std::uint64_t number = session.next_number++;
  if (draft.eliciting) {
    draft.writer.SetRoom(draft.limit - draft.payload + kFloorRoom);
    const std::uint64_t floor = std::min(Floor(session), number);
    draft.writer.Floor(number - floor);
  }
  const bool has_time = HasTime(session, draft);
  const std::size_t size = Assemble(peer, draft, number, has_time, room);
  session.follows_probe = (draft.carried & kCarriedMtuProbe) != 0;
  if (draft.grants) session.grant_due = session.grant_now = false;

  if (draft.acks) {
    session.unacknowledged = 0;
    session.ack_now = false;
    session.ack_deadline = kNever;
  }
  if (!draft.eliciting) {
    if (draft.acks) ++state_->counters.acks_only;
    return size;
  }
  const std::uint32_t index = sent_.Get();  // MaySend saw one
  Sent& packet = sent_[index];
  packet = Sent{};
  packet.number = number;
  packet.time = state_->now;
  packet.size = static_cast<std::uint32_t>(size);
  packet.carried = draft.carried;
  packet.segment_count = draft.segment_count;
  for (std::size_t i = 0; i < draft.segment_count; ++i) {
    packet.segments[i] = {draft.segments[i], segments_[draft.segments[i]].generation};
  }
  packet.rate = session.congestion.OnSent(packet.size, session.in_flight, state_->now);
  session.sent.PushBack(sent_, index);
  session.in_flight += size;
  ++session.in_flight_packets;
  packet.small =
      draft.segment_count > 0 && draft.limit > draft.writer.size() + draft.payload + kSmallRoom;
  session.in_flight_small += packet.small ? 1 : 0;
  session.last_eliciting = state_->now;
  WatchRings(session);
  session.next_send = session.congestion.NextSend(session.next_send, packet.size, state_->now);
  // Then not one packet at a time: some that leave together cost one call and one wake-up.
  if (session.next_send > state_->now) {
    session.paced_until = session.next_send + session.congestion.Quantum();
  }
  session.probe_due = false;
  session.no_hurry = has_time;
  session.hold_until = kNever;
  return size;
}

}  // namespace sekisho::pm
