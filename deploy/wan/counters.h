// SPDX-License-Identifier: Apache-2.0
// All counters as one JSON object.  docs/operations/lab.md
#pragma once

#include <cstdint>
#include <string>

#include "deploy/wan/network.h"

namespace sekisho::wan {

std::string CountersJson(const Network& network, uint64_t failed_writes);

}  // namespace sekisho::wan
