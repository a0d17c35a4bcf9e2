// SPDX-License-Identifier: Apache-2.0
// What a datagram does to the state.
#include <algorithm>

#include "transport/pm/endpoint.h"

namespace sekisho::pm {
namespace {

constexpr std::uint32_t kAckEvery = 16;  // eliciting packets
constexpr std::uint32_t kAckEveryUnhurried = 64;
constexpr std::uint64_t kGrantChunk = 16 * 1024;
constexpr std::uint64_t kLeastAllowance = 3 * 1024;
constexpr Nanos kActiveEpoch = 10 * kMillisecond;
constexpr Nanos kUnused = 100 * kMillisecond;

}  // namespace

void Endpoint::OnDatagram(const Address& from, MutableBytes datagram, bool ce, Nanos now) {
  Clock(now);
  ++state_->counters.datagrams_in;
  state_->counters.bytes_in += datagram.size();
  Packet packet;
  if (ParsePacket(datagram, packet) != ParseError::kNone) {
    ++state_->counters.malformed;
    return;
  }
  const Header& header = packet.header;
  if (header.context != config_.context || header.destination != config_.node ||
      header.source >= config_.nodes || header.source == config_.node ||
      header.kind > Kind::kData) {
    ++state_->counters.foreign;
    return;
  }
  if (header.kind == Kind::kData) {
    OnData(datagram, packet, ce);
  } else {
    OnGreeting(from, datagram, packet);
  }
  // Who has work to do is scheduled anew when it is done.
  if (!peers_[header.source].in_work) Reschedule(peers_[header.source]);
}

void Endpoint::OnData(MutableBytes datagram, const Packet& packet, bool ce) {
  Peer& peer = peers_[packet.header.source];
  Session& session = SessionOf(peer);
  if (!peer.has_session) {
    ++state_->counters.no_session;
    return;
  }
  const std::uint64_t number = packet.header.number;
  switch (session.window.Check(number, BitsOf(peer))) {
    case ReceiveWindow::Verdict::kNew:
      break;
    case ReceiveWindow::Verdict::kDuplicate:
      ++state_->counters.replayed;
      return;
    case ReceiveWindow::Verdict::kTooOld:
      ++state_->counters.too_old;
      return;
  }
  // A node that authenticates payloads believes none that is not.
  const bool is_bare = config_.payload_tag && cipher_ == nullptr && !packet.payload.empty() &&
                       (packet.header.flags & kFlagPayloadTag) == 0;
  if (is_bare || !Open(session.session_receive, cipher_, &payload_key_, datagram, packet)) {
    ++state_->counters.bad_tag;
    return;
  }
  Contents contents;
  if (!Acceptable(peer, packet, contents)) {
    ++state_->counters.bad_frames;
    return;
  }
  if (peer.state == PeerState::kGone) {
    session.window.Mark(number, BitsOf(peer));
    if (!contents.closing && contents.eliciting && peer.reason != Reason::kClosed) {
      peer.close_due = true;
      Work(peer);
    }
    return;
  }
  peer.confirmed = true;
  peer.silence = 0;
  if (peer.greet == Peer::Greet::kAnswer || peer.state == PeerState::kSuspect) {
    peer.greet = Peer::Greet::kNone;
    peer.greet_due = false;
    peer.greet_deadline = kNever;
  }
  peer.state = PeerState::kUp;
  Work(peer);
  if (!Apply(peer, packet)) return;  // not stored or gone: its data did not arrive
  NoteArrival(peer, packet, contents, ce);
  const GangPhase phase = PhaseOf(state_->gang.wave);  // was it the last?
  if (phase == GangPhase::kStopping || phase == GangPhase::kFlushed) StepGang();
}

// Everything that can be wrong with a genuine packet, before any of it is applied.
bool Endpoint::Acceptable(Peer& peer, const Packet& packet, Contents& contents) {
  Session& session = SessionOf(peer);
  FrameReader reader(packet.control, packet.payload);
  Frame frame;
  while (reader.Next(frame)) {
    switch (frame.kind) {
      case FrameKind::kAck:
        if (frame.ranges[0].high >= session.next_number) return false;
        continue;
      case FrameKind::kFloor:
        if (frame.value >= packet.header.number) return false;
        continue;
      case FrameKind::kPad:
        contents.padded = true;
        continue;
      case FrameKind::kData:
        if (frame.channel >= config_.channels) return false;
        if (frame.value + frame.length >
            receive_streams_[StreamIndex(IdOf(peer), frame.channel)].byte_limit) {
          return false;
        }
        break;
      case FrameKind::kCredit:
        if (frame.channel >= config_.channels) return false;
        break;
      case FrameKind::kClose:
        contents.closing = true;
        break;
      case FrameKind::kGang:
        if (frame.gang.wave > kWaveMax) return false;
        break;
      default:
        break;
    }
    contents.eliciting = true;
  }
  return reader.ok();
}

bool Endpoint::Apply(Peer& peer, const Packet& packet) {
  Session& session = SessionOf(peer);
  FrameReader reader(packet.control, packet.payload);
  Frame frame;
  bool stored = true;
  while (reader.Next(frame)) {
    switch (frame.kind) {
      case FrameKind::kAck:
        OnAck(peer, frame);
        break;
      case FrameKind::kData:
        stored = StoreData(peer, frame) && stored;
        break;
      case FrameKind::kCredit: {
        SendStream& out = send_streams_[StreamIndex(IdOf(peer), frame.channel)];
        out.byte_limit = std::max(out.byte_limit, frame.value);
        out.message_limit = std::max(out.message_limit, frame.length);
        break;
      }
      case FrameKind::kGrant:
        session.grant_limit = std::max(session.grant_limit, frame.value);
        break;
      case FrameKind::kWant:
        session.want = static_cast<std::uint32_t>(std::min(frame.value, kWantMax));
        if (!session.in_grants && session.want > 0) {
          session.in_grants = true;
          state_->grants.PushBack(sessions_, IdOf(peer));
        }
        // It may not have heard what it has already; that was not watched where nothing is lost.
        session.grant_due = session.grant_now = session.granted > session.received;
        AllotGrants();
        break;
      case FrameKind::kGang:
        OnGang(peer, frame.gang, packet.header.number);
        break;
      case FrameKind::kFloor:
        session.window.SetFloor(packet.header.number - frame.value);
        break;
      case FrameKind::kClose:
        Gone(peer, Reason::kClosed);
        return false;
      case FrameKind::kPing:
        session.ack_now = true;
        RepeatLimits(peer);
        break;
      case FrameKind::kPad:
        break;
    }
    if (peer.state == PeerState::kGone) return false;
  }
  return stored;
}

// The peer may wait for one that was lost: without a loss that we would hear of, if it was saved
// before it heard the limit, and restored after that.
void Endpoint::RepeatLimits(Peer& peer) {
  Session& session = SessionOf(peer);
  session.grant_due = session.grant_now = session.granted > session.received;
  RepeatCredits(peer);
}

bool Endpoint::StoreData(Peer& peer, const Frame& frame) {
  const std::uint32_t stream = StreamIndex(IdOf(peer), frame.channel);
  ReceiveStream& in = receive_streams_[stream];
  std::uint64_t fresh;
  if (in.Store(ReceiveRing(stream), intervals_, frame.value, frame.payload, fresh) !=
      Stored::kYes) {
    ++state_->counters.no_interval;
    return false;
  }
  if (fresh > 0) {
    NoteReceived(SessionOf(peer), fresh);
    MakeReady(stream);
  }
  return true;
}

void Endpoint::NoteArrival(Peer& peer, const Packet& packet, const Contents& contents, bool ce) {
  Session& session = SessionOf(peer);
  const std::uint64_t number = packet.header.number;
  const bool is_waited_for = paused() && !packet.payload.empty();  // a job that stops is flushed
  const bool has_time = (packet.header.flags & kFlagNoHurry) != 0 && !is_waited_for;
  const std::uint64_t before = session.window.largest();
  const bool in_order = session.window.Mark(number, BitsOf(peer));
  if (number > before) session.largest_time = state_->now;
  if (ce) {
    ++session.ce_count;
    ++state_->counters.ce_marks;
  }
  // A driver that took over left more numbers out than can be under way; and a probe that is longer
  // than its path carries is no loss.
  const std::uint64_t expected = before + ((packet.header.flags & kFlagAfterProbe) != 0 ? 2 : 1);
  if (number > expected && number - before <= kNumbersInFlight) {
    NoteLoss(session, number - expected);
  }
  if (number < before && !contents.padded) NoteFound(session);  // a probe was not missed
  if (!contents.eliciting) return;
  WatchRings(session);
  ++session.unacknowledged;
  if (!in_order || ce || is_waited_for ||
      session.unacknowledged >= (has_time ? kAckEveryUnhurried : kAckEvery)) {
    session.ack_now = true;
  } else {
    const Nanos due = state_->now + (has_time ? kUnhurried : session.rtt.AckDelay());
    session.ack_deadline = std::min(session.ack_deadline, due);
  }
}

// Whoever sent something has work.
void Endpoint::AcknowledgeAtOnce() {
  if (paused())
    return;  // what is waited for is acknowledged, and the next wave takes the others along
  for (std::uint32_t i = state_->work.first; i != kNil; i = peers_[i].work_next) {
    if (!peers_[i].has_session) continue;
    Session& session = sessions_[i];
    if (session.ack_deadline != kNever) session.ack_now = true;
  }
}

void Endpoint::Hurry(NodeId node, Nanos now) {
  Clock(now);
  if (node >= config_.nodes || !MayHurry(node)) return;
  sessions_[node].probe_due = true;
  Work(peers_[node]);
}

void Endpoint::SendBefore(Nanos until, Nanos now) {
  Clock(now);
  while (deadlines_.earliest() <= until) {
    Peer& peer = peers_[deadlines_.first()];
    Session& session = SessionOf(peer);
    const bool owes = session.ack_deadline <= until;
    const bool holds = session.hold_until > state_->now && session.hold_until <= until;
    // Something else, which must wait until then.
    if (!peer.has_session || (!owes && !holds)) return;
    if (owes) session.ack_now = true, session.ack_deadline = kNever;
    if (holds) session.hold_until = 0;  // nothing comes that it could leave with
    Work(peer);
    Reschedule(peer);
  }
}

// What it was granted because it asked, of which the sum is to stay under the budget.
void Endpoint::CountBeyond(Session& session, std::uint32_t bytes) {
  state_->granted_beyond += bytes;
  state_->granted_beyond -= session.beyond;
  session.beyond = bytes;
}

// What everyone may be ahead without asking: less when many have sent of late.
std::uint64_t Endpoint::Allowance(Session& session) {
  const auto epoch = static_cast<std::uint32_t>(state_->now / kActiveEpoch);
  if (epoch != state_->epoch) {
    state_->senders_before = epoch == state_->epoch + 1 ? state_->senders_now : 0;
    state_->senders_now = 0;
    state_->epoch = epoch;
  }
  if (session.active_epoch != epoch) {
    session.active_epoch = epoch;
    ++state_->senders_now;
  }
  const std::uint64_t senders =
      std::max<std::uint32_t>({1, state_->senders_now, state_->senders_before});
  if (IsTrusted(session)) {
    return std::clamp<std::uint64_t>(8 * std::uint64_t{config_.incast_budget} / senders,
                                     kLeastAllowance, kTrustedAllowance);
  }
  return std::clamp<std::uint64_t>(2 * std::uint64_t{config_.incast_budget} / senders,
                                   kLeastAllowance, kFreeAllowance);
}

void Endpoint::NoteReceived(Session& session, std::uint64_t fresh) {
  const std::uint64_t allowance = Allowance(session);
  session.received += fresh;
  // What it asked for is used first: what is left when it has no more is what everyone may be
  // ahead.
  const bool is_used = fresh >= session.beyond || session.granted <= session.received + allowance;
  CountBeyond(session, is_used ? 0 : session.beyond - static_cast<std::uint32_t>(fresh));
  if (session.granted < session.received + allowance / 2) {
    session.granted = session.received + allowance;
    session.grant_due = true;
  }
  if (!state_->grants.empty()) AllotGrants();
}

// Of those from whom nothing has come for long: dead, stopped, or with nothing more to send.  What
// they were granted they keep, but others wait for it no longer.
bool Endpoint::ForgetUnusedGrants() {
  if (state_->now - state_->grants_looked_at < kUnused) return false;
  state_->grants_looked_at = state_->now;
  const std::uint64_t before = state_->granted_beyond;
  for (Peer& peer : peers_) {
    if (!peer.has_session) continue;
    Session& session = SessionOf(peer);
    if (session.beyond > 0 && state_->now - session.largest_time >= kUnused)
      CountBeyond(session, 0);
  }
  return state_->granted_beyond < before;
}

// To each that wants, in turn, until the budget is given away.
void Endpoint::AllotGrants() {
  while (!state_->grants.empty()) {
    const std::uint32_t node = state_->grants.first;
    Session& session = sessions_[node];
    const std::uint64_t budget = std::max<std::uint64_t>(config_.incast_budget, session.want);
    if (state_->granted_beyond >= budget) {
      if (!ForgetUnusedGrants()) return;
      continue;
    }
    const std::uint64_t chunk =
        std::min<std::uint64_t>({kGrantChunk, session.want, budget - state_->granted_beyond});
    // The first one counts with what it was ahead without asking.
    const std::uint64_t ahead = session.granted - std::min(session.granted, session.received);
    const std::uint64_t before =
        session.beyond > 0 ? session.beyond : std::min(ahead, kFreeAllowance);
    CountBeyond(session, static_cast<std::uint32_t>(before + chunk));
    session.granted = std::max(session.granted, session.received) + chunk;
    session.want -= static_cast<std::uint32_t>(chunk);
    session.grant_due = session.grant_now = true;
    state_->grants.Remove(sessions_, node);
    if (session.want > 0) {
      state_->grants.PushBack(sessions_, node);
    } else {
      session.in_grants = false;
    }
    Work(peers_[node]);
  }
}

}  // namespace sekisho::pm
