// SPDX-License-Identifier: Apache-2.0
// What flows get that run at once: each link's rate is shared fairly, each direction by itself.
#pragma once

#include <utility>
#include <vector>

#include "topology/tree.h"

namespace sekisho::topology::sim {

std::vector<double> FairRates(const Tree& tree, const std::vector<double>& mbps,
                              const std::vector<std::pair<int, int>>& flows);

}  // namespace sekisho::topology::sim
