// SPDX-License-Identifier: Apache-2.0
// What measurements near each other in time have in common: a machine that emulates many hosts is slower for a while, for
// its neighbours' sake, and all that is measured then is longer.  docs/protocol/12-topology.md, "Drift".  Pure.
#pragma once

#include <vector>

#include "topology/fit.h"

namespace sekisho::topology {

// Of each observation how much longer than usual all were when it was made, by the residuals of a tree; empty: nothing
// of the kind is to be seen.
std::vector<double> Drift(const std::vector<Observation>& observations, const std::vector<double>& residuals);

}  // namespace sekisho::topology
