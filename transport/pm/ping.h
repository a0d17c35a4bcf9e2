// SPDX-License-Identifier: Apache-2.0
// Asks a node for a CHALLENGE, which it answers without keeping anything, and takes the time.
#pragma once

#include <system_error>
#include <vector>

#include "transport/pm/job_file.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {

struct PingResult {
  std::uint32_t sent = 0, received = 0, duplicates = 0, reordered = 0;
  std::vector<Nanos> times;  // ascending
};

struct PathResult {
  std::size_t mtu = 0;        // bytes of the largest IP packet that arrives there unfragmented
  bool segmentation = false;  // datagrams that left in one call (UDP_SEGMENT) arrived
  bool coalescing = false;    // answers were taken in one call (UDP_GRO)
};

// Node `as` of a job asks node `to`, from a port of its own: a running node `as` is not disturbed.
class Pinger {
 public:
  std::error_code Open(const JobFile& job, NodeId as, NodeId to);
  // `interval` apart, up to 1 s for the last answer.
  void Ping(std::uint32_t count, Nanos interval, PingResult& result);
  // What the way there carries; the node answers within `round_trip`, mostly.
  void FindPath(Nanos round_trip, PathResult& result);

 private:
  std::size_t Write(std::uint64_t nonce, std::size_t size);  // a question, into room_
  bool IsAnswer(MutableBytes datagram, std::uint64_t& nonce) const;
  bool Await(Nanos until) const;
  bool Arrives(std::size_t size, Nanos patience);
  void TryOffloads(Nanos patience, PathResult& result);
  void SendTrain(Nanos patience, bool may_coalesce, PathResult& result);

  const JobFile* job_ = nullptr;
  NodeId as_ = 0, to_ = 0;
  UdpSocket socket_;
  SipKey key_{}, answer_key_{};
  std::uint64_t next_nonce_ = 1;
  std::vector<std::uint8_t> room_;  // of a question, or of what is received
};

}  // namespace sekisho::pm
