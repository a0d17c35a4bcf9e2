// SPDX-License-Identifier: Apache-2.0
// One measurement under way: connections to a responder, one after the other, and the pings on
// them.  docs/protocol/12-topology.md, "Probing".
#pragma once

#include <chrono>
#include <cstdint>

#include <poll.h>

#include "topology/probe/orders.h"
#include "topology/probe/sampler.h"

namespace sekisho::topology {

class PingRun {
 public:
  using Clock = std::chrono::steady_clock;

  PingRun(ProbeTarget target, const ProbeKey& key, const Request& request);
  ~PingRun();
  PingRun(const PingRun&) = delete;
  PingRun& operator=(const PingRun&) = delete;

  pollfd Watch() const;
  void Handle(short events);           // that poll(2) saw
  void Expire(Clock::time_point now);  // gives up if the peer has been silent for too long
  Clock::time_point deadline() const { return deadline_; }

  bool IsDone() const { return sampler_.Next() == Sampler::Step::kEnd; }
  Answer Result() const { return sampler_.Result(); }

 private:
  enum class State { kConnecting, kGreeting, kPinging };
  void Connect();
  bool Send(const void* bytes, size_t size);
  void Ping();
  void Fail();

  ProbeTarget target_;
  ProbeKey key_;
  Sampler sampler_;
  int socket_ = -1;
  State state_ = State::kConnecting;
  uint64_t number_ = 0;
  uint64_t back_ = 0;  // what has come back of it
  size_t got_ = 0;
  Clock::time_point sent_;
  Clock::time_point deadline_;
};

}  // namespace sekisho::topology
