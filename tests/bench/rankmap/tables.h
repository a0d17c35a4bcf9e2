// SPDX-License-Identifier: Apache-2.0
// The tables of rank placement.
#pragma once

#include <cstdint>
#include <string>

#include "rankmap/qap_solver.h"

namespace sekisho::bench {

// Every `every`-th instance of the directory, for `seconds` of CPU each or until best known.
void QaplibTable(const std::string& directory, double seconds, int every, uint64_t seed,
                 rankmap::QapMethod method);

// Fourteen problems on tori, `seconds` of CPU each on one thread; `permute` < 0 keeps the natural
// order.
void TorusTable(double seconds, int64_t permute, uint64_t seed);

// Two figures on one line, by max-min shares of the links.  An exit code.
int PrintTimes(const std::string& network, const std::string& pattern, const std::string& placement);

// A placement by one thread that searches for `seconds` of processor; an exit code.
struct SearchOptions {
  std::string network, pattern, output, objective;
  double seconds = 1;
  double target = 0;  // 0: none
};
int SolveByCpu(const SearchOptions& search);

// Milliseconds of nine checkpoints, middle and most, on one line.  An exit code.
int TimeCheckpoints(const std::string& network, const std::string& pattern);

}  // namespace sekisho::bench
