// SPDX-License-Identifier: Apache-2.0
// A host's part in a measurement of its network: answers other hosts' pings, and pings whom it is
// told to.  docs/protocol/12-topology.md, "Probers".
#pragma once

#include <string>

#include "common/status.h"

namespace sekisho::topology {

// Orders come from `in`, answers go to `out`; ends with "Q" or at the end of `in`.  It listens at
// the address of `interface`, or else of the first that is not loopback, on any port.
absl::Status RunProber(const std::string& interface, int in, int out);

}  // namespace sekisho::topology
