// SPDX-License-Identifier: Apache-2.0
// `sekisho-allocator --decide`: what would be decided, for administrators to try.  Pure but for the
// streams.
#pragma once

#include <istream>
#include <ostream>

#include "allocator/inventory.h"
#include "allocator/near.h"
#include "allocator/policy.h"

namespace sekisho::allocator {

// Reads a processor count a line; every job asked for stays, none ends.  Prints a line for each:
// `RESOURCE NODE...`, `RESOURCE (waits)` or `never: why`.
void DecideCounts(const Inventory& inventory, const Policy& policy, std::istream& in,
                  std::ostream& out, const Nearness& nearness = {});

}  // namespace sekisho::allocator
