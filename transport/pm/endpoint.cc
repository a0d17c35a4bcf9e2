// SPDX-License-Identifier: Apache-2.0
// The protocol core of PM: the application's calls, timers.
#include "transport/pm/endpoint.h"

#include <algorithm>

namespace sekisho::pm {
namespace {

constexpr Nanos kFirstPersist = 20 * kMillisecond;
constexpr std::uint64_t kRoomForControl = 128;  // bytes of a packet

}  // namespace

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
  ++state_->counters.messages_out;
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

std::error_code Endpoint::Room(NodeId node, ChannelId channel, std::size_t length,
                               std::uint64_t others) const {
  if (const auto error = CheckCall(node, channel)) return error;
  const std::uint64_t needed = kMessageHeadSize + Padded(length);
  if (needed > config_.send_ring) return Error::kTooLong;
  if (peers_[node].state == PeerState::kGone) return Error::kPeerGone;
  const SendStream& out = send_streams_[StreamIndex(node, channel)];
  if (out.part_left > 0) return Error::kBadSequence;
  const bool fits =
      out.messages + others < out.message_limit && out.room(config_.send_ring) >= needed;
  return fits ? std::error_code() : Error::kWouldBlock;
}

std::error_code Endpoint::Send(NodeId node, ChannelId channel, MessageKind kind, Bytes begin,
                               Bytes end, Nanos now) {
  const std::size_t size = begin.size() + end.size();
  if (const auto error = Room(node, channel, size)) return error;
  Clock(now);
  const std::uint32_t stream = StreamIndex(node, channel);
  Peer& peer = peers_[node];
  const bool waits = MustWait(peer, Backlog(peer), kMessageHeadSize + Padded(size));
  send_streams_[stream].Put(SendRing(stream), kind, begin, end);
  ++state_->counters.messages_out;
  if (peer.state == PeerState::kUnknown) StartGreeting(peer);
  if (!waits) Work(peer);
  return {};
}

// Whether `more` bytes behind a backlog that could not leave cannot leave either: what it waits
// for, an acknowledgement or a deadline, is known already.
bool Endpoint::MustWait(const Peer& peer, std::uint64_t backlog, std::uint64_t more) const {
  const Session& session = SessionOf(peer);
  if (backlog == 0 || peer.in_work) return false;
  if (session.hold_until != kNever && session.hold_until > state_->now) {
    return backlog + more + kRoomForControl < session.mtu;
  }
  return session.paced_until > state_->now ||
         (session.in_flight > 0 && session.in_flight >= session.congestion.window());
}

void Endpoint::MakeReady(std::uint32_t stream) {
  ReceiveStream& in = receive_streams_[stream];
  if (in.ready) return;
  switch (in.Peek(ReceiveRing(stream))) {
    case ReceiveStream::Look::kNothing:
      if (in.Starved(ReceiveRing(stream))) {
        in.credit_due = true;
        Work(peers_[stream / config_.channels]);
      }
      return;
    case ReceiveStream::Look::kBroken:
      if (peers_[stream / config_.channels].state != PeerState::kGone) {
        ++state_->counters.violations;
        Gone(peers_[stream / config_.channels], Reason::kViolation);
      }
      return;
    case ReceiveStream::Look::kMessage:
    case ReceiveStream::Look::kPiece:
      in.ready = true;
      state_->ready.PushBack(receive_streams_, stream);
  }
}

bool Endpoint::Receive(Message& message) {
  if (state_->ready.empty()) return false;
  const std::uint32_t stream = state_->ready.first;
  ReceiveStream& in = receive_streams_[stream];
  state_->ready.Remove(receive_streams_, stream);
  in.ready = false;
  message.source = static_cast<NodeId>(stream / config_.channels);
  message.channel = static_cast<ChannelId>(stream % config_.channels);
  message.bytes = in.Open(ReceiveRing(stream), message.kind, message.more);
  message.end = in.opened;
  if (!message.more) ++state_->counters.messages_in;
  MakeReady(stream);
  return true;
}

std::error_code Endpoint::Release(NodeId node, ChannelId channel, Nanos now) {
  Clock(now);
  if (const auto error = CheckCall(node, channel)) return error;
  const std::uint32_t stream = StreamIndex(node, channel);
  if (!receive_streams_[stream].is_open()) return Error::kBadSequence;
  ReleaseOne(stream, receive_streams_[stream].opened);
  return {};
}

void Endpoint::ReleaseOne(std::uint32_t stream, std::uint64_t end) {
  ReceiveStream& in = receive_streams_[stream];
  in.Release(ReceiveRing(stream), end);
  MakeReady(stream);
  Peer& peer = peers_[stream / config_.channels];
  if (peer.has_session && forget_ != nullptr && SessionOf(peer).rings_at == kNever) {
    WatchRings(SessionOf(peer));
    if (!peer.in_work) Reschedule(peer);
  }
  if (peer.has_session && peer.state != PeerState::kGone &&
      (in.consumed + config_.receive_ring - in.byte_limit >= config_.receive_ring / 4 ||
       in.messages + config_.message_limit - in.message_limit >= config_.message_limit / 4)) {
    in.credit_due = true;
    Work(peer);
  }
}

void Endpoint::GiveBack(NodeId node, ChannelId channel, std::uint32_t session, std::uint64_t end) {
  if (CheckCall(node, channel) || peers_[node].session != session) return;
  const std::uint32_t stream = StreamIndex(node, channel);
  const ReceiveStream& in = receive_streams_[stream];
  if (in.opened < end) Hold(node, channel, end);
  // What is due is sent by the time of the call that follows.
  while (in.consumed < end && in.is_open()) ReleaseOne(stream, end);
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
  state_->work.PushBack(peers_, IdOf(peer));
}

std::uint64_t Endpoint::Backlog(const Peer& peer) const {
  std::uint64_t backlog = 0;
  if (paused()) return 0;
  for (const SendStream& out : send_streams(IdOf(peer))) backlog += out.sendable();
  return backlog;
}

bool Endpoint::HasSomethingToSay(const Peer& peer) const {
  const Session& session = SessionOf(peer);
  if (session.grant_due || session.probe_due || peer.gang_due || !session.lost_segments.empty())
    return true;
  for (const ReceiveStream& in : receive_streams(IdOf(peer))) {
    if (in.credit_due) return true;
  }
  return Backlog(peer) > 0;
}

// Bytes that were not sent, or no more messages that may be given: the application may wait.
bool Endpoint::NeedsCredit(const Peer& peer) const {
  for (const SendStream& out : send_streams(IdOf(peer))) {
    if (out.written > out.cut || out.messages >= out.message_limit) return true;
  }
  return false;
}

// With data for credit, for what its program says, or for what a stop needs.
bool Endpoint::Awaits(const Peer& peer) const {
  return AwaitsGang(peer) || (!paused() && (peer.is_awaited || NeedsCredit(peer)));
}

void Endpoint::Await(NodeId node, bool awaits, Nanos now) {
  Clock(now);
  if (node >= config_.nodes) return;
  Peer& peer = peers_[node];
  peer.is_awaited = awaits;
  if (!peer.in_work) Reschedule(peer);
}

// Who waits for a peer that has a session, while nothing is in flight, would not notice that it
// died; nor would who only listens, if he does not want to know it (keep-alive).
void Endpoint::WatchSilence(Peer& peer) {
  Session& session = SessionOf(peer);
  const bool awaits = Awaits(peer);
  if (!awaits) session.persist_tries = 0;
  // A question that cannot leave now is not asked again and again.
  const bool listens = config_.keep_alive_ms > 0 && !paused() && !session.probe_due;
  if (peer.state == PeerState::kGone || session.in_flight_packets > 0 || !(awaits || listens)) {
    session.persist_at = kNever;
    return;
  }
  const Nanos due =
      awaits ? state_->now +
                   std::min(kFirstPersist << std::min<unsigned>(session.persist_tries, 8), kSecond)
             : KeptAliveUntil(session);
  session.persist_at = std::min(session.persist_at, due);
}

void Endpoint::OnSilence(Peer& peer) {
  Session& session = SessionOf(peer);
  session.persist_at = kNever;
  // Something came since that time was set.
  if (!Awaits(peer) && (paused() || KeptAliveUntil(session) > state_->now)) return;
  session.persist_tries = std::min<std::uint8_t>(session.persist_tries + 1, 8);
  // Who runs may also miss a limit: the answer to PING.
  (paused() ? peer.gang_due : session.probe_due) = true;
  session.want_reported = 0;  // a grant may have been lost
}

void Endpoint::Reschedule(Peer& peer) {
  Session& session = SessionOf(peer);
  if (!peer.has_session) return deadlines_.Set(IdOf(peer), peer.greet_deadline);
  WatchSilence(peer);
  Nanos when = std::min({peer.greet_deadline, session.ack_deadline, session.loss_deadline,
                         session.persist_at, session.rings_at, ProbeDeadline(session)});
  if (session.hold_until > state_->now) when = std::min(when, session.hold_until);
  if (session.starved) when = std::min(when, state_->now + kMillisecond);
  if (session.paced_until > state_->now && peer.state != PeerState::kGone &&
      HasSomethingToSay(peer)) {
    when = std::min(when, session.paced_until);
  }
  deadlines_.Set(IdOf(peer), when);
}

void Endpoint::OnTimer(Nanos now) {
  Clock(now);
  while (deadlines_.earliest() <= state_->now) {
    Peer& peer = peers_[deadlines_.first()];
    if (peer.greet_deadline <= state_->now) GreetTimeout(peer);
    if (peer.has_session) SessionTimer(peer);
    // Sending renews the other deadlines; until then this one must not come up again.
    deadlines_.Set(IdOf(peer), kNever);
    Work(peer);
  }
}

void Endpoint::SessionTimer(Peer& peer) {
  Session& session = SessionOf(peer);
  if (session.ack_deadline <= state_->now) {
    session.ack_now = true;
    session.ack_deadline = kNever;
  }
  if (session.loss_deadline <= state_->now) DetectLosses(peer);
  if (session.rings_at <= state_->now) LookAtRings(peer);
  if (ProbeDeadline(session) <= state_->now) OnProbeTimeout(peer);
  if (session.persist_at <= state_->now) OnSilence(peer);
  if (session.hold_until <= state_->now) session.hold_until = 0;  // expired: send what there is
  session.starved = false;
}

// All of a session that waits for the peer's acknowledgement, and what was learned of the path with
// it.
void Endpoint::ForgetFlight(Peer& peer) {
  Session& session = SessionOf(peer);
  for (SentList* list : {&session.sent, &session.lost}) {
    while (!list->empty()) {
      const std::uint32_t index = list->first;
      list->Remove(sent_, index);
      sent_.Put(index);
    }
  }
  session.lost_segments = {};
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
  session.in_flight = 0;
  session.in_flight_packets = 0;
  session.in_flight_small = 0;
  session.mtu_in_flight = false;
  CountBeyond(session, 0);
  session.granted = session.received;
  if (session.in_grants) state_->grants.Remove(sessions_, IdOf(peer));
  session.in_grants = false;
  session.want = 0;
  session.ack_deadline = session.loss_deadline = session.hold_until = session.persist_at = kNever;
  session.rings_at = kNever;
  session.ack_now = session.probe_due = session.grant_due = session.starved = false;
  session.unacknowledged = 0;
}

void Endpoint::Gone(Peer& peer, Reason reason) {
  if (peer.has_session) ForgetFlight(peer);
  peer.state = PeerState::kGone;
  peer.reason = reason;
  peer.greet = Peer::Greet::kNone;
  peer.greet_due = false;
  peer.greet_deadline = kNever;
  peer.close_due = peer.has_session && reason != Reason::kClosed && reason != Reason::kSilent;
  Work(peer);
  AllotGrants();
  if (state_->gang_active) StepGang();
}

}  // namespace sekisho::pm
