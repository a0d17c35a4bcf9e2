// SPDX-License-Identifier: Apache-2.0
// Answers measurements on a known network with the noise of docs/protocol/12-topology.md.
#pragma once

#include <random>
#include <vector>

#include "topology/measurement.h"
#include "topology/sim/truth.h"

namespace sekisho::topology::sim {

class Network {
 public:
  Network(const Truth& truth, uint64_t seed);

  double PathRtt(int a, int b) const;  // without noise
  Answer Measure(const Request& request);

 private:
  double Ping(double base_us, int from, int to);
  double PairBias(int a, int b, double rtt_us) const;
  double HostShift(int host) const;
  bool Answers(const Request& request);

  const Truth& truth_;
  uint64_t seed_;
  Rooted rooted_;
  std::mt19937_64 random_;
  std::vector<long> answers_left_;  // of each host; < 0: as many as are asked for
  bool is_slow_ = false;
};

}  // namespace sekisho::topology::sim
