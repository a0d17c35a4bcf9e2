// SPDX-License-Identifier: Apache-2.0
// Acknowledgements, losses and time-outs: docs/protocol/9-pm.md, "Rules of the default profile".
#include <algorithm>

#include "transport/pm/endpoint.h"

namespace sekisho::pm {
namespace {

constexpr std::uint8_t kSuspectAfter = 3;
constexpr std::uint8_t kGoneAfter = 12;
constexpr std::uint8_t kMany = 255;  // missing packets: no longer counted

bool Contains(const Frame& ack, std::uint64_t number) {
  for (std::uint32_t i = 0; i < ack.range_count; ++i) {
    if (number >= ack.ranges[i].low) return number <= ack.ranges[i].high;
  }
  return false;
}

}  // namespace

void Endpoint::SampleRtt(Session& session, const Sent& packet, const Frame& ack) {
  const auto delay_us = static_cast<Nanos>(std::min<std::uint64_t>(ack.delay_us, 1'000'000));
  session.rtt.Sample(
      state_->now - packet.time,
      std::min(delay_us * kMicrosecond, std::max(kUnhurried, session.rtt.AckDelay())), state_->now);
}

void Endpoint::OnAck(Peer& peer, const Frame& ack) {
  Session& session = SessionOf(peer);
  const std::uint64_t largest = ack.ranges[0].high;
  std::uint32_t acknowledged = 0;
  Congestion::Newest newest;
  for (std::uint32_t i = session.sent.first; i != kNil && sent_[i].number <= largest;) {
    const std::uint32_t next = sent_[i].next;
    if (Contains(ack, sent_[i].number)) {
      if (sent_[i].number == largest) SampleRtt(session, sent_[i], ack);
      Acknowledge(session, i, false, newest);
      ++acknowledged;
    }
    i = next;
  }
  for (std::uint32_t i = session.lost.first; i != kNil;) {
    const std::uint32_t next = sent_[i].next;
    if (Contains(ack, sent_[i].number)) {
      // Without this a round trip that grew beyond the time-out would never be noticed.
      if (sent_[i].number == largest) SampleRtt(session, sent_[i], ack);
      Acknowledge(session, i, true, newest);
      ++acknowledged;
    }
    i = next;
  }
  if (acknowledged == 0) return;
  session.timeouts = 0;
  DetectLosses(peer);
  const std::uint64_t marked = ack.ce_count > session.ce_seen ? ack.ce_count - session.ce_seen : 0;
  session.ce_seen += marked;
  session.congestion.OnAckEnd(newest, session.rtt, session.in_flight, marked, state_->now);
}

void Endpoint::Acknowledge(Session& session, std::uint32_t index, bool was_lost,
                           Congestion::Newest& newest) {
  Sent& packet = sent_[index];
  if (packet.time > session.rack_time ||
      (packet.time == session.rack_time && packet.number > session.rack_number)) {
    session.rack_time = packet.time;
    session.rack_number = packet.number;
  }
  if (was_lost) {
    ++state_->counters.spurious;
    if (packet.by_gap) {
      session.reorder_shift = std::min<std::uint8_t>(session.reorder_shift + 1, 8);
      session.reorder_calm = state_->now;
      NoteFound(session);
    }
    session.congestion.OnSpurious(packet.size, packet.lost_time);
    session.lost.Remove(sent_, index);
  } else {
    session.in_flight -= packet.size;
    --session.in_flight_packets;
    session.in_flight_small -= packet.small ? 1 : 0;
    session.sent.Remove(sent_, index);
  }
  NoteLargePacket(session, packet.size, true);
  session.congestion.OnAcked(packet.rate, packet.time, packet.size, state_->now, newest);
  if ((packet.carried & kCarriedMtuProbe) != 0) OnMtuProbe(session, true);
  for (const SegmentRef& ref : packet.refs()) AcknowledgeSegment(session, ref);
  sent_.Put(index);
}

void Endpoint::AcknowledgeSegment(Session& session, const SegmentRef& ref) {
  Segment& segment = segments_[ref.index];
  if (segment.generation != ref.generation || segment.state == Segment::State::kAcked) return;
  if (segment.state == Segment::State::kLost) session.lost_segments.Remove(segments_, ref.index);
  segment.state = Segment::State::kAcked;
  SendStream& out = send_streams_[segment.stream];
  while (out.first != kNil && segments_[out.first].state == Segment::State::kAcked) {
    const std::uint32_t done = out.first;
    out.acked = segments_[done].offset + segments_[done].length;
    out.first = segments_[done].next;
    if (out.first == kNil) out.last = kNil;
    ++segments_[done].generation;
    segments_.Put(done);
  }
}

// `packets` were lost, or as many numbers are missing.
void Endpoint::NoteLoss(Session& session, std::uint64_t packets) {
  if (IsCalm(session)) {
    session.was_trusted = IsTrusted(session);
    session.missing = 0;
  }
  session.last_loss = state_->now;
  session.missing =
      static_cast<std::uint8_t>(std::min<std::uint64_t>(session.missing + packets, kMany));
}

// One of them was only late.
void Endpoint::NoteFound(Session& session) {
  if (session.missing == 0 || session.missing == kMany || --session.missing > 0) return;
  session.last_loss = state_->now - (session.was_trusted ? kTrustedAfter : kCalm);
}

Nanos Endpoint::ReorderWindow(const Session& session) const {
  const Nanos base = std::max(session.rtt.minimum() / 4, 20 * kMicrosecond);
  return std::min(base << std::min<unsigned>(session.reorder_shift, 8),
                  std::max(session.rtt.smoothed(), base));
}

void Endpoint::DetectLosses(Peer& peer) {
  Session& session = SessionOf(peer);
  session.loss_deadline = kNever;
  const Nanos calm = 16 * session.rtt.smoothed();
  if (session.reorder_shift > 0 && state_->now - session.reorder_calm > calm) {
    --session.reorder_shift;
    session.reorder_calm = state_->now;
  }
  const Nanos patience =
      std::max(session.rtt.latest(), session.rtt.smoothed()) + ReorderWindow(session);
  for (std::uint32_t i = session.sent.first; i != kNil;) {
    const Sent& packet = sent_[i];
    if (packet.number >= session.rack_number || packet.time > session.rack_time) break;
    // Nothing waits for a probe, and what goes through memory overtakes it.
    const bool is_probe = (packet.carried & kCarriedMtuProbe) != 0;
    const Nanos lost_at = packet.time + patience + (is_probe ? kMillisecond : 0);
    const std::uint32_t next = packet.next;
    if (lost_at > state_->now) {
      session.loss_deadline = std::min(session.loss_deadline, lost_at);
      if (!is_probe) break;
      i = next;
      continue;
    }
    DeclareLost(peer, i, true);
    i = next;
  }
  ForgetLost(session);
  Work(peer);
}

void Endpoint::RepeatCredits(const Peer& peer) {
  for (std::size_t channel = 0; channel < config_.channels; ++channel) {
    ReceiveStream& in = receive_streams_[StreamIndex(IdOf(peer), channel)];
    if (in.byte_limit > config_.receive_ring || in.message_limit > kMessagesBeforeCredit) {
      in.credit_due = true;
    }
  }
}

void Endpoint::DeclareLost(Peer& peer, std::uint32_t index, bool by_gap) {
  Session& session = SessionOf(peer);
  Sent& packet = sent_[index];
  session.in_flight -= packet.size;
  --session.in_flight_packets;
  session.in_flight_small -= packet.small ? 1 : 0;
  session.sent.Remove(sent_, index);
  if ((packet.carried & kCarriedMtuProbe) != 0) {
    OnMtuProbe(session, false);
    sent_.Put(index);
    return;
  }
  ++(by_gap ? state_->counters.lost_by_gap : state_->counters.lost_by_timeout);
  ++(by_gap ? peer.lost_by_gap : peer.lost_by_timeout);
  session.congestion.OnLost(packet.number, packet.size, by_gap, state_->now);
  // After a time-out it is more often late than lost: its host's processors are busy.
  if (by_gap) NoteLoss(session, 1);
  NoteLargePacket(session, packet.size, false);
  for (const SegmentRef& ref : packet.refs()) {
    Segment& segment = segments_[ref.index];
    if (segment.generation != ref.generation || segment.state != Segment::State::kInFlight ||
        segment.last_number != packet.number) {
      continue;
    }
    segment.state = Segment::State::kLost;
    session.lost_segments.PushBack(segments_, ref.index);
  }
  if ((packet.carried & kCarriedCredit) != 0) RepeatCredits(peer);
  if ((packet.carried & kCarriedGrant) != 0) session.grant_due = true;
  if ((packet.carried & kCarriedWant) != 0) session.want_reported = 0;
  if ((packet.carried & kCarriedGang) != 0) peer.gang_due = true;
  packet.lost_time = state_->now;
  packet.by_gap = by_gap;
  session.lost.PushBack(sent_, index);
}

// Packets whose acknowledgement will not come any more.
void Endpoint::ForgetLost(Session& session) {
  const Nanos memory = std::max(4 * session.rtt.smoothed(), 10 * kMillisecond);
  while (!session.lost.empty()) {
    const std::uint32_t index = session.lost.first;
    const bool crowded = sent_.free_count() < sent_.size() / 4 ||
                         session.next_number - sent_[index].number > kNumbersInFlight / 2;
    if (state_->now - sent_[index].lost_time < memory && !crowded) return;
    if (!sent_[index].by_gap) NoteLoss(session, 1);
    session.lost.Remove(sent_, index);
    sent_.Put(index);
  }
}

// Nobody acknowledges, and others need the records of packets: all but the last `keep` in flight
// are lost, and what is lost is not remembered.
void Endpoint::GiveUpFlight(Peer& peer, std::uint32_t keep) {
  Session& session = SessionOf(peer);
  while (session.in_flight_packets > keep && !session.sent.empty()) {
    DeclareLost(peer, session.sent.first, false);
  }
  while (!session.lost.empty()) {
    const std::uint32_t index = session.lost.first;
    session.lost.Remove(sent_, index);
    sent_.Put(index);
  }
}

Nanos Endpoint::ProbeDeadline(const Session& session) const {
  if (session.in_flight_packets == 0) return kNever;
  return session.last_eliciting +
         (session.timeouts == 0 ? session.rtt.ProbeTimeout() + (session.no_hurry ? kUnhurried : 0)
                                : session.rtt.RetransmitTimeout(session.timeouts - 1u));
}

void Endpoint::OnProbeTimeout(Peer& peer) {
  Session& session = SessionOf(peer);
  session.probe_due = true;
  session.last_eliciting = state_->now;
  if (session.timeouts < 255) ++session.timeouts;
  // The probe: the oldest data once more, or new data if nothing can be repeated.  Its
  // acknowledgement tells what else was lost; silence alone does not, the peer may only be busy.
  ++state_->counters.probes;
  for (std::uint32_t i = session.sent.first; i != kNil; i = sent_[i].next) {
    // Later also what carried no data: it must not keep its record, or nobody may send any more.
    if (sent_[i].segment_count == 0 && session.timeouts == 1) continue;
    DeclareLost(peer, i, false);
    break;
  }
  if (session.timeouts == 1) return;
  ++state_->counters.timeouts;
  session.congestion.OnTimeout();
  if (session.timeouts == 3) OnMtuBlackHole(session);
  if (++peer.silence >= kGoneAfter && MayBeAway(peer)) peer.silence = kSuspectAfter;
  if (peer.silence >= kGoneAfter) {
    Gone(peer, Reason::kSilent);
  } else if (peer.silence >= kSuspectAfter) {
    peer.state = PeerState::kSuspect;
    // It may have been started anew and not know our session: ask who it is.
    if (peer.greet == Peer::Greet::kNone) StartGreeting(peer);
  }
}

}  // namespace sekisho::pm
