// SPDX-License-Identifier: Apache-2.0
// Lower bounds that hold for every placement; cheap, and often far below what can be reached.
#pragma once

#include <cstdint>

#include "rankmap/evaluate.h"
#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/qaplib.h"

namespace sekisho::rankmap {

struct Bounds {
  int64_t hop_bytes = 0;
  int64_t hops_sum = 0;
  int64_t max_link = 0;
  int64_t step_sum = 0;
};

// Of the number that `objective` minimises.
double ObjectiveBound(const Bounds& bounds, Objective objective, Weight qap_weight);

Bounds LowerBounds(const Pattern& pattern, const Network& network);

// Gilmore-Lawler: O(n^3).
int64_t QapBound(const QapInstance& instance);

}  // namespace sekisho::rankmap
