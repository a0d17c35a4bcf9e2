// SPDX-License-Identifier: Apache-2.0
// When to ping, and when it is enough: the stop rule of a measurement, without sockets and clocks.
// docs/protocol/12-topology.md, "Probing".  Pure.
#pragma once

#include "topology/measurement.h"

namespace sekisho::topology {

class Sampler {
 public:
  // What to do next.
  enum class Step { kConnect, kPing, kEnd };

  explicit Sampler(const Request& request) : request_(request) {}

  Step Next() const { return step_; }
  void Connected() { step_ = Step::kPing; }
  void Ponged(double rtt_us);  // ends the set by kConnect, or all by kEnd
  void Failed();               // the connection could not be made, or broke: all ends

  // Its duration is that of the pings, and 1.5 of the shortest for each connection: what a
  // connection takes besides says more of the peer's processes than of the way there.
  Answer Result() const;

 private:
  void EndSet();

  Request request_;
  Step step_ = Step::kConnect;
  int sets_ = 0;
  int pings_ = 0;  // of this set
  int all_pings_ = 0;
  int without_ = 0;     // pings since the last new minimum
  double best_us_ = 0;  // of this set
  double low_us_ = 0;
  double high_us_ = 0;
  double sum_us_ = 0;  // of all pings
};

}  // namespace sekisho::topology
