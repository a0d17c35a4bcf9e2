// SPDX-License-Identifier: Apache-2.0
// What every part of PM shares: time, addresses, configuration, states, counters.
#pragma once

#include <array>
#include <cstdint>

#include "transport/pm/little_endian.h"
#include "transport/pm/seal.h"

namespace sekisho::pm {

using Nanos = std::int64_t;
inline constexpr Nanos kNever = INT64_MAX;
inline constexpr Nanos kMicrosecond = 1'000;
inline constexpr Nanos kMillisecond = 1'000'000;
inline constexpr Nanos kSecond = 1'000'000'000;

inline constexpr std::uint32_t kNil = UINT32_MAX;  // no index

using NodeId = std::uint16_t;
using ChannelId = std::uint8_t;

// An IPv6 address or an IPv4 address mapped into one.
struct Address {
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;

  // By words: asked of every datagram that may leave together with others.
  bool operator==(const Address& other) const {
    return Load(ip.data()) == Load(other.ip.data()) &&
           Load(ip.data() + 8) == Load(other.ip.data() + 8) && port == other.port;
  }
};

enum class PeerState : std::uint8_t { kUnknown, kGreeting, kUp, kSuspect, kGone };

enum class Reason : std::uint8_t {
  kNone = 0,
  kSilent = 1,     // nothing heard over many time-outs
  kClosed = 2,     // the peer closed
  kLeft = 3,       // we closed
  kRestarted = 4,  // a newer incarnation took the old one's place; what was unacknowledged is lost
  kViolation = 5,  // one side broke the protocol
  kRefused = 6,    // the peer's parameters do not fit ours
};

struct Config {
  NodeId node = 0;
  std::uint16_t nodes = 2;
  std::uint16_t context = 0;
  std::uint16_t channels = 4;  // 1 to 256, the same on all nodes
  std::uint32_t send_ring =
      256 * 1024;  // bytes per (peer, channel); a power of two, 4 KiB to 1 GiB
  std::uint32_t receive_ring = 256 * 1024;
  std::uint32_t message_limit = 16384;  // unread messages per (peer, channel), at least 64
  std::uint32_t packets = 4096;         // unacknowledged packets over all peers
  std::uint32_t intervals = 2048;       // out-of-order runs over all peers
  std::uint32_t datagram_max = 8972;    // the most that path MTU discovery looks for
  std::uint32_t incast_budget = 256 * 1024;
  std::uint32_t keep_alive_ms = 0;  // silence after which a peer is asked; 0: for ever
  std::uint32_t fixed_window = 0;   // bytes; not 0: no congestion control (baselines only)
  bool payload_tag = true;
  JobKey key{};
  std::uint64_t incarnation = 1;  // larger with every start of this node
  std::uint64_t seed = 0;         // secret random bits: cookie key, nonces
};

// Bytes of a ring where nobody chose them.  Three messages of 64 KiB in 256 KiB make a sender wait
// for each of them; but rings are filled as far as senders get, and where all of them together do
// not fit into the cache, a byte costs more than a wait.
inline std::uint32_t DefaultRing(std::uint32_t nodes, std::uint32_t channels) {
  constexpr std::uint32_t kStreams = 8;  // of 1 MiB
  const std::uint32_t streams = nodes * channels;
  return streams <= kStreams ? 1u << 20 : streams < 2 * kStreams ? 1u << 19 : 1u << 18;
}

// Every reason for which a packet is dropped or sent twice has a number here.
struct Counters {
  std::uint64_t datagrams_in = 0, datagrams_out = 0, bytes_in = 0, bytes_out = 0;
  std::uint64_t messages_in = 0, messages_out = 0;
  // Dropped.
  std::uint64_t malformed = 0, foreign = 0, bad_tag = 0, replayed = 0, too_old = 0;
  std::uint64_t bad_cookie = 0, stale_greeting = 0, greeting_deferred = 0, no_session = 0;
  std::uint64_t bad_frames = 0, no_interval = 0, replies_lost = 0;
  // Sent twice, and why.
  std::uint64_t lost_by_gap = 0, lost_by_timeout = 0, probes = 0, timeouts = 0, spurious = 0;
  std::uint64_t retransmitted = 0, cut_smaller = 0;
  // Else.
  std::uint64_t acks_only = 0, held_small = 0, mtu_probes = 0, mtu_black_holes = 0, ce_marks = 0;
  std::uint64_t violations = 0, sessions = 0, no_packet_record = 0;
};

}  // namespace sekisho::pm
