// SPDX-License-Identifier: Apache-2.0
// One measurement under way: connections to a responder, one after the other, and the pings on
// them.  docs/protocol/12-topology.md, "Probing".
#pragma once

#include <cstdint>
#include <string>

#include "topology/probe/dialled.h"
#include "topology/probe/probe_task.h"
#include "topology/probe/sampler.h"

namespace sekisho::topology {

class PingRun final : public ProbeTask {
 public:
  PingRun(ProbeTarget target, const ProbeKey& key, const Request& request);

  pollfd Watch() const override;
  void Handle(short events) override;
  void Expire(Clock::time_point now) override;  // gives up if the peer has been silent for too long
  Clock::time_point deadline() const override { return deadline_; }
  bool IsDone() const override { return sampler_.Next() == Sampler::Step::kEnd; }
  std::string Result() const override;
  Answer answer() const;

 private:
  enum class State { kConnecting, kGreeting, kPinging };
  void Connect();
  void Ping();
  double RoundTripUs(Clock::time_point now) const;
  void Fail();

  ProbeTarget target_;
  ProbeKey key_;
  Sampler sampler_;
  Dialled peer_;
  State state_ = State::kConnecting;
  bool is_relayed_ = false;  // any of the connections
  uint64_t number_ = 0;
  uint64_t back_ = 0;  // what has come back of it
  size_t got_ = 0;
  Clock::time_point sent_;
  Clock::time_point deadline_;
};

}  // namespace sekisho::topology
