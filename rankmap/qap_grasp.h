// SPDX-License-Identifier: Apache-2.0
// The construction of GRASP for the QAP (Resende, Pardalos, Li: ACM Algorithm 754).
#pragma once

#include <vector>

#include "rankmap/bisem.h"
#include "rankmap/qaplib.h"
#include "rankmap/random.h"

namespace sekisho::rankmap {

constexpr double kGraspAlpha = 0.25;
constexpr double kGraspBeta = 0.5;

// A greedy randomised placement, none if stopped; the local search is the caller's.
std::vector<int> GraspConstruct(const QapInstance& instance, Random& random, const Stop& stop);

}  // namespace sekisho::rankmap
