// SPDX-License-Identifier: Apache-2.0
// Measures the way to a responder over TCP, one connection after the other.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "topology/measurement.h"

namespace sekisho::topology {

struct ProbeTarget {
  std::string address;  // IPv4
  uint16_t port = 0;
};

// Blocks until the measurement ends, or `timeout_ms` after it began.  A target that does not answer
// gives an answer that is not ok.
Answer Probe(const ProbeTarget& target, const Request& request, int timeout_ms = 3000);

}  // namespace sekisho::topology
