// SPDX-License-Identifier: Apache-2.0
// BISEM (RMATT): network and ranks are cut in two together, each group's neighbours pulling as
// terminals.
#pragma once

#include <functional>
#include <optional>

#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/placement.h"
#include "rankmap/random.h"

namespace sekisho::rankmap {

// Asked now and then by everything that takes long; true: give up.
using Stop = std::function<bool()>;

struct BisemOptions {
  int max_itrs = -1;  // cuts before ranks go to random nodes of their area; -1: down to one node
};

// nullopt if stopped.  `graph` has network.slots() vertices; those from `ranks` on are empty.
std::optional<Placement> Bisem(const Graph& graph, int ranks, const Network& network,
                               const BisemOptions& options, Random& random, const Stop& stop);

}  // namespace sekisho::rankmap
