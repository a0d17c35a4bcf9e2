// SPDX-License-Identifier: Apache-2.0
// All that an endpoint knows of one peer, and its record of packets that are not resolved yet.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "transport/pm/congestion.h"
#include "transport/pm/gang.h"
#include "transport/pm/memory.h"
#include "transport/pm/receive_window.h"
#include "transport/pm/rtt.h"
#include "transport/pm/stream.h"
#include "transport/pm/types.h"

namespace sekisho::pm {

inline constexpr std::size_t kDatagramBase = 1200;  // what every path carries
inline constexpr std::size_t kSegmentsPerPacket = 4;
inline constexpr std::uint64_t kNumbersInFlight = 1792;  // from the oldest unresolved to the next

inline constexpr std::uint64_t kWantMax = 16 * 1024 * 1024;  // whatever a peer says
// Bytes that need no grant: from one of whom nothing was lost for a minute, and from others.  Who
// has used up what he was given wakes us to ask for more, and is woken for the answer.
inline constexpr std::uint64_t kTrustedAllowance = 256 * 1024;
inline constexpr std::uint64_t kFreeAllowance = 16 * 1024;
inline constexpr Nanos kTrustedAfter = 60 * kSecond;

// How long an acknowledgement may wait for data that it can go with, where nothing was lost for
// kCalm.
inline constexpr Nanos kUnhurried = 4 * kMillisecond;
inline constexpr Nanos kCalm = 500 * kMillisecond;

// Rings that were empty for so long need no memory.
inline constexpr Nanos kRingsIdle = kSecond;

struct SegmentRef {
  std::uint32_t index = kNil;
  std::uint32_t generation = 0;
};

// What a packet carried beside data, to be said again if it is lost.
inline constexpr std::uint8_t kCarriedCredit = 1;
inline constexpr std::uint8_t kCarriedGrant = 2;
inline constexpr std::uint8_t kCarriedWant = 4;
inline constexpr std::uint8_t kCarriedMtuProbe = 8;
inline constexpr std::uint8_t kCarriedGang = 16;

struct Sent {
  std::uint64_t number = 0;
  Nanos time = 0;
  Nanos lost_time = 0;
  RateSample rate;
  std::uint32_t size = 0;
  std::uint32_t next = kNil;
  std::uint32_t previous = kNil;
  std::array<SegmentRef, kSegmentsPerPacket> segments;
  std::uint8_t segment_count = 0;
  std::uint8_t carried = 0;
  bool small = false;   // could have carried more
  bool by_gap = false;  // declared lost because a later packet arrived

  std::span<const SegmentRef> refs() const {
    return std::span(segments).first(std::min<std::size_t>(segment_count, kSegmentsPerPacket));
  }
};

using SentList = List<Sent, &Sent::next, &Sent::previous>;
using LostSegments = List<Segment, &Segment::lost_next, &Segment::lost_previous>;
using ReadyList = List<ReceiveStream, &ReceiveStream::ready_next, &ReceiveStream::ready_previous>;

// What is known of every node of the job, also of one that never speaks.
struct alignas(64) Peer {
  enum class Greet : std::uint8_t { kNone, kHello, kAnswer };

  PeerState state = PeerState::kUnknown;
  Reason reason = Reason::kNone;
  Greet greet = Greet::kNone;
  bool greet_due = false;
  bool has_session = false;  // there is a Session of it; before, that memory holds anything
  bool confirmed = false;    // the peer knows the session: it sent something under its key
  bool close_due = false;
  bool in_work = false;
  bool gang_due = false;
  bool is_replaced : 1 = false;  // started anew, and its old messages are not read yet
  bool is_awaited : 1 = false;   // the application waits for something that its program says
  std::uint8_t greet_tries = 0;
  std::uint8_t silence = 0;  // time-outs since anything of the peer was heard
  std::uint32_t session = 0;
  std::uint32_t work_next = kNil, work_previous = kNil;
  std::uint64_t incarnation = 0;
  Nanos greet_deadline = kNever;
  Address address;

  std::uint64_t nonce = 0;
  std::uint64_t cookie = 0;
  Nanos hello_time = 0;
  SipKey greeting_send{}, greeting_receive{};
  GangNote gang;                  // what it said
  std::uint64_t gang_number = 0;  // in which packet last
  // Packets to it, for who asks: sessions have no room for them.
  std::uint32_t lost_by_gap = 0, lost_by_timeout = 0;
};

// What only a session needs: made when it begins, so that silent peers have no page of it.  What
// every datagram touches stands together.
struct Session {
  // What says whether something may leave.
  Congestion congestion;
  std::uint64_t in_flight = 0;  // bytes
  std::uint32_t in_flight_packets = 0;
  std::uint32_t in_flight_small = 0;  // of these, packets that were not full
  Nanos hold_until = kNever;
  Nanos paced_until = 0;  // no new packet before this
  Nanos next_send = 0;    // by the pace; may lie in the past, by a burst at most
  std::uint64_t next_number = 1;
  std::uint64_t new_bytes = 0;    // stream bytes sent, each once
  std::uint64_t grant_limit = 0;  // of the peer for new_bytes
  std::uint64_t want_base = 0;
  std::uint32_t want_reported = 0;
  std::uint16_t next_channel = 0;
  std::uint16_t mtu = 1200;
  SentList sent;               // in flight, by number
  SentList lost;               // declared lost, remembered to notice errors
  LostSegments lost_segments;  // to be sent again
  SipKey session_send{};

  bool probe_due = false;
  bool no_hurry = false;  // the last eliciting packet said that its acknowledgement has time
  bool starved = false;   // no packet record was left
  bool ack_now = false;
  bool grant_due = false;
  bool grant_now = false;  // the peer asked for it and waits
  bool in_grants = false;
  std::uint8_t timeouts = 0;       // in a row, the probe included
  std::uint8_t reorder_shift = 0;  // the reordering window was doubled so often
  std::uint8_t persist_tries = 0;
  std::uint8_t missing = 0;  // packets since the last calm that have not turned up

  // Path MTU.
  std::uint8_t mtu_index = 0;
  std::uint8_t mtu_tries = 0;
  std::uint8_t large_lost = 0;  // packets above the base size, since the last that arrived
  bool mtu_in_flight : 1 = false;
  bool follows_probe : 1 = false;  // the next packet
  bool was_trusted : 1 = false;    // before the last calm ended
  Nanos mtu_raise = 0;             // no search before this

  // Loss.
  Rtt rtt;
  Nanos last_eliciting = 0;
  Nanos loss_deadline = kNever;
  Nanos persist_at = kNever;  // nothing is in flight: ask whether the peer lives
  Nanos rack_time = 0;        // when the newest acknowledged packet was sent
  std::uint64_t rack_number = 0;
  Nanos last_loss = -kTrustedAfter;  // or gap in what arrived
  Nanos reorder_calm = 0;            // since when no spurious retransmission was seen
  std::uint64_t ce_seen = 0;

  // Receiving.
  Nanos ack_deadline = kNever;
  SipKey session_receive{};
  ReceiveWindow window;
  std::uint32_t unacknowledged = 0;
  std::uint32_t want = 0;
  Nanos largest_time = 0;
  std::uint64_t received = 0;  // stream bytes, each once
  std::uint64_t granted = 0;   // limit given for them
  std::uint64_t ce_count = 0;
  std::uint32_t active_epoch = UINT32_MAX;  // when it last sent data, in units of Endpoint's epochs
  std::uint32_t beyond = 0;                 // granted because it asked, and not yet used
  std::uint32_t grant_next = kNil, grant_previous = kNil;
  Nanos rings_at = kNever;  // when to look whether the rings' memory is needed
};

}  // namespace sekisho::pm
