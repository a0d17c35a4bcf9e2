// SPDX-License-Identifier: Apache-2.0
// The order in which a long message goes from host to host so that it crosses every link once in
// each direction at most.  docs/protocol/12-topology.md, "Broadcast".  Pure.
#pragma once

#include <vector>

#include "topology/tree.h"

namespace sekisho::topology {

// All placed hosts, depth first from `source`, which comes first; near branches first, so
// that the message leaves a site only when all of it have it.
std::vector<int> BroadcastOrder(const Tree& tree, int source);

// What a pipeline in this order carries, where link i carries mbps[i] in each direction: the least
// share that a hop has of a link.
double PipelineMbps(const Tree& tree, const std::vector<double>& mbps,
                    const std::vector<int>& order);

}  // namespace sekisho::topology
