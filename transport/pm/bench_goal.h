// SPDX-License-Identifier: Apache-2.0
// One goal of PM: what is measured, against what, and what is judged of it.
#pragma once

#include <vector>

#include "transport/pm/bench.h"
#include "transport/pm/bench_ends.h"

namespace sekisho::pm {

enum class Judge {
  kRatioAtMost,  // PM / the other side
  kRatioAtLeast,
  kAtMost,  // PM alone
  kAtLeast,
};

// Which number of what was measured.
enum class Of { kValue, kProcessor, kP99, kP999, kMost, kP99OfMedian, kAccepted };

double Pick(Of of, const Measured& seen);

// What takes turns.
struct Sides {
  std::unique_ptr<Measurement> (*pm)(const Traffic& traffic);
  std::unique_ptr<Measurement> (*other)(const Traffic& traffic);  // null: there is nothing
  const char* other_name;                                         // in JSON
};

struct Goal {
  const char* what;
  const char* unit;
  Traffic traffic;
  double scale;  // of what is measured, to the unit
  Judge judge;
  double must, stretch;  // stretch 0: none
  double loss = 0;       // percent
  Of of = Of::kValue;
  const Sides* sides = nullptr;  // null: PM and TCP
};

double Load();

// A line for each; `pm` and `other` hold the rounds.
void PrintHead(const char* network, const Settings& settings);
void Print(const Goal& goal, const Sides& sides, bool is_json, const std::vector<Measured>& pm,
           const std::vector<Measured>& other);

}  // namespace sekisho::pm
