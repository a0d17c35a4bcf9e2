// SPDX-License-Identifier: Apache-2.0
// A network that is known, for tests and benchmarks.  Never linked into a daemon.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "topology/tree.h"

namespace sekisho::topology::sim {

struct TruthLink {
  int u = 0;
  int v = 0;
  double uv_us = 0;  // one way
  double vu_us = 0;
  double mbps = 1000;
};

struct Noise {
  bool is_exact = false;
  double pair_us = 0.7;       // what is wrong with a pair whenever it is measured
  double pair_share = 0.002;  // and the part of it that grows with the round trip
  double connection_chance = 0.02;
  double connection_us = 15;
  double busy_chance = 0;  // that one ping of a busy host waits
  double busy_us = 0;
  double session_us =
      0;  // uniform up to so much: what a host adds to all of its pairs while a network lives
  double host_us = 0;  // exponential: the same, of each host by itself
  // Times in which every measurement takes so much longer, and how many measurements such a time lasts in the mean.
  double slow_us = 0;
  double slow_for = 0;
};

Noise QuietNoise();
Noise LabNoise();
Noise ExactNoise();

struct Truth {
  std::string family;
  uint64_t seed = 0;
  int host_count = 0;
  int vertex_count = 0;
  std::vector<TruthLink> links;  // a tree
  std::vector<int> cluster_of;   // of each host
  std::vector<std::string> names;
  std::vector<bool> is_busy;
  std::vector<bool> is_dead;
  std::vector<std::pair<int, long>> dying;  // hosts that answer so often, and then no more
  std::vector<int> liars;                   // hosts whose round trips are made up
  int spines = 0;  // > 0: the core is that many switches, and each pair takes one of them
  int core = -1;   // the vertex that stands for them
  Noise noise;
};

Tree TreeOf(const Truth& truth);  // all of it: also switches that join just two links

}  // namespace sekisho::topology::sim
