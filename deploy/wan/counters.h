// SPDX-License-Identifier: Apache-2.0
// All counters as one JSON object.  docs/operations/lab.md
#pragma once

#include <cstdint>
#include <string>

#include "deploy/wan/network.h"

namespace sekisho::wan {

// How well the emulator keeps up with its links.
struct DeliveryCounters {
  uint64_t failed_writes = 0;
  uint64_t late_100us = 0;  // delivered more than that after its time
  uint64_t late_1ms = 0;
  uint64_t late_10ms = 0;
};

std::string CountersJson(const Network& network, const DeliveryCounters& deliveries);

}  // namespace sekisho::wan
