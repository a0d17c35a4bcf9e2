// SPDX-License-Identifier: Apache-2.0
// One node and its many peers, which all live in one other process, each with its own socket.
#pragma once

#include <sys/epoll.h>

#include <vector>

#include "transport/pm/bench_ends.h"

namespace sekisho::pm {

class PeersEnd : public End {
 public:
  Measured Run(Nanos time) override;

 protected:
  explicit PeersEnd(const Traffic& traffic) : End(traffic), text_(traffic.size) {}

  // A message; to a new peer the first thing at all.
  virtual void SendTo(int peer) = 0;
  // So many answers, whole.
  virtual void Await(int count) = 0;
  std::size_t answer_size() const { return is_incast() ? traffic_.answer : traffic_.size; }
  bool is_incast() const { return traffic_.answer > 0; }
  // Notes how long it was under way.
  bool notes_delays() const { return traffic_.first_contact; }
  bool answers() const { return traffic_.round_trip; }
  bool spins() const { return traffic_.waiting == Waiting::kSpin; }

  std::vector<std::uint8_t> text_;

 private:
  void RoundTrip() override;
  void SendSome() override;
  void SendStamped(Nanos stamp) override;
  float Exchange(int peer);
  Measured ToNewPeers();
  Measured ManyToOne(Nanos time);
};

// Which descriptors can be read.
class Readable {
 public:
  Readable();
  ~Readable();
  Readable(const Readable&) = delete;
  Readable& operator=(const Readable&) = delete;

  void Add(int fd, std::uint32_t tag);
  // The tags of what is readable, at `until` (or never) at the latest.
  std::span<const epoll_event> Wait(Nanos until);

 private:
  int fd_;
  std::array<epoll_event, 64> events_;
};

std::unique_ptr<Measurement> OpenPmPeers(const Traffic& traffic);
std::unique_ptr<Measurement> OpenTcpPeers(const Traffic& traffic);
// All of them new in each round.
std::unique_ptr<Measurement> OpenNewPmPeers(const Traffic& traffic);
std::unique_ptr<Measurement> OpenNewTcpPeers(const Traffic& traffic);

// User memory of a node, in bytes for each peer: of those that it may talk to, or talked to once.
std::unique_ptr<Measurement> OpenSilentPeers(const Traffic& traffic);
std::unique_ptr<Measurement> OpenKnownPeers(const Traffic& traffic);

}  // namespace sekisho::pm
