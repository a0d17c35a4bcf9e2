// SPDX-License-Identifier: Apache-2.0
// What must always hold of an endpoint: for the simulator and the fuzzer, which ask after every
// event.
#include "transport/pm/endpoint.h"

namespace sekisho::pm {

const char* Endpoint::Check(NodeId node, Held& held) const {
  const Peer& peer = peers_[node];
  static const Session none;
  const Session& session = peer.has_session ? SessionOf(peer) : none;
  std::uint64_t bytes = 0;
  std::uint32_t packets = 0, small = 0;
  std::uint64_t previous = 0;
  for (std::uint32_t i = session.sent.first; i != kNil; i = sent_[i].next) {
    if (sent_[i].number <= previous) return "packets in flight out of order";
    previous = sent_[i].number;
    bytes += sent_[i].size, ++packets, ++held.records;
    small += sent_[i].small ? 1 : 0;
  }
  for (std::uint32_t i = session.lost.first; i != kNil; i = sent_[i].next) ++held.records;
  if (bytes != session.in_flight || packets != session.in_flight_packets) return "bytes in flight";
  if (small != session.in_flight_small) return "small packets in flight";
  if (previous >= session.next_number) return "packet number not used yet in flight";
  for (std::uint32_t i = session.lost_segments.first; i != kNil; i = segments_[i].lost_next) {
    if (segments_[i].state != Segment::State::kLost) return "lost list holds another state";
  }
  held.beyond += session.beyond;
  for (std::size_t channel = 0; channel < config_.channels; ++channel) {
    const std::uint32_t stream = StreamIndex(node, channel);
    const SendStream& out = send_streams_[stream];
    const ReceiveStream& in = receive_streams_[stream];
    if (out.acked > out.cut || out.cut > out.written) return "send stream out of order";
    if (out.written - out.acked > config_.send_ring) return "send ring overrun";
    std::uint64_t at = out.acked;
    for (std::uint32_t i = out.first; i != kNil; i = segments_[i].next) {
      if (segments_[i].offset != at) return "segments do not follow each other";
      at += segments_[i].length, ++held.segments;
    }
    if (peer.state != PeerState::kGone && at != out.cut) return "segments do not reach the cut";
    if (in.contiguous < in.consumed) return "receive stream out of order";
    std::uint64_t high = in.contiguous;
    for (std::uint32_t i = in.interval; i != kNil; i = intervals_[i].next) {
      if (intervals_[i].low <= high || intervals_[i].high <= intervals_[i].low) {
        return "runs above the gap out of order";
      }
      high = intervals_[i].high, ++held.intervals;
    }
    if (high - in.consumed > config_.receive_ring) return "receive ring overrun";
  }
  return nullptr;
}

const char* Endpoint::CheckSum(const Held& all) const {
  if (sent_.free_count() + all.records != sent_.size()) return "packet records leaked";
  if (segments_.free_count() + all.segments != segments_.size()) return "segments leaked";
  if (intervals_.free_count() + all.intervals != intervals_.size()) return "intervals leaked";
  if (all.beyond != state_->granted_beyond) return "sum of grants";
  return nullptr;
}

const char* Endpoint::Check() const {
  Held all;
  for (NodeId node = 0; node < config_.nodes; ++node) {
    if (const char* wrong = Check(node, all)) return wrong;
  }
  return CheckSum(all);
}

}  // namespace sekisho::pm
