// SPDX-License-Identifier: Apache-2.0
// How near an inferred tree is to the truth: docs/protocol/12-topology.md, "Scores".
#pragma once

#include <cstdint>
#include <vector>

#include "topology/sim/truth.h"

namespace sekisho::topology::sim {

struct Score {
  double accuracy = 0;        // of the answers to "do A-B and C-D share a link?"
  double false_negative = 0;  // share of all questions
  double false_positive = 0;
  double accuracy_same_cluster = 0;  // A, B, C, D at one site
  double quartets_wrong = 0;         // resolved otherwise than in truth
  double quartets_missed = 0;        // resolved in truth only
  double quartets_extra = 0;         // resolved here only
  double quartets = 0;               // right, of all
  int robinson_foulds = 0;           // splits of one tree only
  int splits_true = 0;
  double rtt_error_median = 0;  // relative
  double rtt_error_p99 = 0;
  int hosts_lost = 0;
};

Score Judge(const Truth& truth, const Tree& inferred, int questions = 100000, uint64_t seed = 1);

}  // namespace sekisho::topology::sim
