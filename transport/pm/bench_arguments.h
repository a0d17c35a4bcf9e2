// SPDX-License-Identifier: Apache-2.0
// The command line of sekisho-pm-bench.
#pragma once

#include "transport/pm/bench.h"

namespace sekisho::pm {

struct BenchArguments {
  enum class Bench : std::uint8_t { kSpinning, kOneThread, kNear, kGoals };

  Bench bench = Bench::kSpinning;
  Settings settings;
};

// False: the program ends with `code`, and all is said.
bool ReadBenchArguments(int argc, char** argv, BenchArguments& arguments, int& code);

}  // namespace sekisho::pm
