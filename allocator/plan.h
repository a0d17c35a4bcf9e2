// SPDX-License-Identifier: Apache-2.0
// Who runs now, where, and who waits for what: docs/protocol/6-allocation.md.  Pure.
#pragma once

#include "allocator/inventory.h"
#include "allocator/near.h"
#include "allocator/policy.h"
#include "proto/allocation.pb.h"

namespace sekisho::allocator {

// One decision for each pending demand, in order.  The policy gives a demand its resource, once;
// there the queue is first in, first out, but a later one starts at once where it fits and where,
// by the wall-time limits, it cannot delay the first that waits.
// `nearness` counts for policies that keep jobs near.
proto::DecideReply Decide(const Inventory& inventory, const Policy& policy,
                          const proto::DecideRequest& request, const Nearness& nearness = {});

}  // namespace sekisho::allocator
