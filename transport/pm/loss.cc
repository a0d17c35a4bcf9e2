// SPDX-License-Identifier: Apache-2.0
// Acknowledgements, losses and time-outs: docs/protocol/9-pm.md, "Rules of the default profile".
#include <algorithm>

#include "transport/pm/endpoint.h"

namespace sekisho::pm {
namespace {

constexpr std::uint8_t kSuspectAfter = 3;
constexpr std::uint8_t kGoneAfter = 12;

bool Contains(const Frame& ack, std::uint64_t number) {
  for (std::uint32_t i = 0; i < ack.range_count; ++i) {
    if (number >= ack.ranges[i].low) return number <= ack.ranges[i].high;
  }
  return false;
}

}  // namespace

void Endpoint::SampleRtt(Peer& peer, const Sent& packet, const Frame& ack) {
  const auto delay_us = static_cast<Nanos>(std::min<std::uint64_t>(ack.delay_us, 1'000'000));
  peer.rtt.Sample(state_->now - packet.time,
                  std::min(delay_us * kMicrosecond, std::max(kUnhurried, peer.rtt.AckDelay())),
                  state_->now);
}

void Endpoint::OnAck(Peer& peer, const Frame& ack) {
  const std::uint64_t largest = ack.ranges[0].high;
  std::uint32_t acknowledged = 0;
  for (std::uint32_t i = peer.sent.first; i != kNil && sent_[i].number <= largest;) {
    const std::uint32_t next = sent_[i].next;
    if (Contains(ack, sent_[i].number)) {
      if (sent_[i].number == largest) SampleRtt(peer, sent_[i], ack);
      Acknowledge(peer, i, false);
      ++acknowledged;
    }
    i = next;
  }
  for (std::uint32_t i = peer.lost.first; i != kNil;) {
    const std::uint32_t next = sent_[i].next;
    if (Contains(ack, sent_[i].number)) {
      // Without this a round trip that grew beyond the time-out would never be noticed.
      if (sent_[i].number == largest) SampleRtt(peer, sent_[i], ack);
      Acknowledge(peer, i, true);
      ++acknowledged;
    }
    i = next;
  }
  if (acknowledged == 0) return;
  peer.timeouts = 0;
  DetectLosses(peer);
  const std::uint64_t marked = ack.ce_count > peer.ce_seen ? ack.ce_count - peer.ce_seen : 0;
  peer.ce_seen += marked;
  peer.congestion.OnAckEnd(peer.rtt, peer.in_flight, marked, state_->now);
}

void Endpoint::Acknowledge(Peer& peer, std::uint32_t index, bool was_lost) {
  Sent& packet = sent_[index];
  if (packet.time > peer.rack_time ||
      (packet.time == peer.rack_time && packet.number > peer.rack_number)) {
    peer.rack_time = packet.time;
    peer.rack_number = packet.number;
  }
  if (was_lost) {
    ++state_->counters.spurious;
    if (packet.by_gap) {
      peer.reorder_shift = std::min<std::uint8_t>(peer.reorder_shift + 1, 8);
      peer.reorder_calm = state_->now;
      NoteFound(peer);
    }
    peer.congestion.OnSpurious(packet.size);
    peer.lost.Remove(sent_, index);
  } else {
    peer.in_flight -= packet.size;
    --peer.in_flight_packets;
    peer.in_flight_small -= packet.small ? 1 : 0;
    peer.sent.Remove(sent_, index);
  }
  NoteLargePacket(peer, packet.size, true);
  peer.congestion.OnAcked(packet.rate, packet.time, packet.size, state_->now);
  if ((packet.carried & kCarriedMtuProbe) != 0) OnMtuProbe(peer, true);
  for (const SegmentRef& ref : packet.refs()) AcknowledgeSegment(peer, ref);
  sent_.Put(index);
}

void Endpoint::AcknowledgeSegment(Peer& peer, const SegmentRef& ref) {
  Segment& segment = segments_[ref.index];
  if (segment.generation != ref.generation || segment.state == Segment::State::kAcked) return;
  if (segment.state == Segment::State::kLost) peer.lost_segments.Remove(segments_, ref.index);
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
void Endpoint::NoteLoss(Peer& peer, std::uint64_t packets) {
  if (IsCalm(peer)) {
    peer.loss_before = peer.last_loss;
    peer.missing = 0;
  }
  peer.last_loss = state_->now;
  peer.missing += static_cast<std::uint32_t>(packets);
}

// One of them was only late.
void Endpoint::NoteFound(Peer& peer) {
  if (peer.missing > 0 && --peer.missing == 0) peer.last_loss = peer.loss_before;
}

Nanos Endpoint::ReorderWindow(const Peer& peer) const {
  const Nanos base = std::max(peer.rtt.minimum() / 4, 20 * kMicrosecond);
  return std::min(base << std::min<unsigned>(peer.reorder_shift, 8),
                  std::max(peer.rtt.smoothed(), base));
}

void Endpoint::DetectLosses(Peer& peer) {
  peer.loss_deadline = kNever;
  const Nanos calm = 16 * peer.rtt.smoothed();
  if (peer.reorder_shift > 0 && state_->now - peer.reorder_calm > calm) {
    --peer.reorder_shift;
    peer.reorder_calm = state_->now;
  }
  const Nanos patience = std::max(peer.rtt.latest(), peer.rtt.smoothed()) + ReorderWindow(peer);
  for (std::uint32_t i = peer.sent.first; i != kNil;) {
    const Sent& packet = sent_[i];
    if (packet.number >= peer.rack_number || packet.time > peer.rack_time) break;
    if (packet.time + patience > state_->now) {
      peer.loss_deadline = packet.time + patience;
      break;
    }
    const std::uint32_t next = packet.next;
    ++state_->counters.lost_by_gap;
    DeclareLost(peer, i, true);
    i = next;
  }
  ForgetLost(peer);
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
  Sent& packet = sent_[index];
  peer.in_flight -= packet.size;
  --peer.in_flight_packets;
  peer.in_flight_small -= packet.small ? 1 : 0;
  peer.sent.Remove(sent_, index);
  if ((packet.carried & kCarriedMtuProbe) != 0) {
    OnMtuProbe(peer, false);
    sent_.Put(index);
    return;
  }
  peer.congestion.OnLost(packet.size);
  // After a time-out it is more often late than lost: its host's processors are busy.
  if (by_gap) NoteLoss(peer, 1);
  NoteLargePacket(peer, packet.size, false);
  for (const SegmentRef& ref : packet.refs()) {
    Segment& segment = segments_[ref.index];
    if (segment.generation != ref.generation || segment.state != Segment::State::kInFlight ||
        segment.last_number != packet.number) {
      continue;
    }
    segment.state = Segment::State::kLost;
    peer.lost_segments.PushBack(segments_, ref.index);
  }
  if ((packet.carried & kCarriedCredit) != 0) RepeatCredits(peer);
  if ((packet.carried & kCarriedGrant) != 0) peer.grant_due = true;
  if ((packet.carried & kCarriedWant) != 0) peer.want_reported = 0;
  if ((packet.carried & kCarriedGang) != 0) peer.gang_due = true;
  packet.lost_time = state_->now;
  packet.by_gap = by_gap;
  peer.lost.PushBack(sent_, index);
}

// Packets whose acknowledgement will not come any more.
void Endpoint::ForgetLost(Peer& peer) {
  const Nanos memory = std::max(4 * peer.rtt.smoothed(), 10 * kMillisecond);
  while (!peer.lost.empty()) {
    const std::uint32_t index = peer.lost.first;
    const bool crowded = sent_.free_count() < sent_.size() / 4 ||
                         peer.next_number - sent_[index].number > kNumbersInFlight / 2;
    if (state_->now - sent_[index].lost_time < memory && !crowded) return;
    if (!sent_[index].by_gap) NoteLoss(peer, 1);
    peer.lost.Remove(sent_, index);
    sent_.Put(index);
  }
}

// Nobody acknowledges, and others need the records of packets: all but the last `keep` in flight
// are lost, and what is lost is not remembered.
void Endpoint::GiveUpFlight(Peer& peer, std::uint32_t keep) {
  while (peer.in_flight_packets > keep && !peer.sent.empty()) {
    DeclareLost(peer, peer.sent.first, false);
  }
  while (!peer.lost.empty()) {
    const std::uint32_t index = peer.lost.first;
    peer.lost.Remove(sent_, index);
    sent_.Put(index);
  }
}

Nanos Endpoint::ProbeDeadline(const Peer& peer) const {
  if (peer.in_flight_packets == 0) return kNever;
  return peer.last_eliciting + (peer.timeouts == 0
                                    ? peer.rtt.ProbeTimeout() + (peer.no_hurry ? kUnhurried : 0)
                                    : peer.rtt.RetransmitTimeout(peer.timeouts - 1u));
}

void Endpoint::OnProbeTimeout(Peer& peer) {
  peer.probe_due = true;
  peer.last_eliciting = state_->now;
  if (peer.timeouts < 255) ++peer.timeouts;
  // The probe: the oldest data once more, or new data if nothing can be repeated.  Its
  // acknowledgement tells what else was lost; silence alone does not, the peer may only be busy.
  ++state_->counters.probes;
  for (std::uint32_t i = peer.sent.first; i != kNil; i = sent_[i].next) {
    // Later also what carried no data: it must not keep its record, or nobody may send any more.
    if (sent_[i].segment_count == 0 && peer.timeouts == 1) continue;
    DeclareLost(peer, i, false);
    break;
  }
  if (peer.timeouts == 1) return;
  ++state_->counters.timeouts;
  peer.congestion.OnTimeout();
  if (peer.timeouts == 3) OnMtuBlackHole(peer);
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
