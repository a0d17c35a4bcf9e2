// SPDX-License-Identifier: Apache-2.0
// All that a context counts, as Prometheus' text: every drop and every repetition by name.
#pragma once

#include <span>

#include "transport/pm/shared_memory.h"

namespace sekisho::pm {

// Returns the length; what does not fit is left out, whole lines.
std::size_t WriteMetrics(SharedMemory& memory, std::span<char> out);

}  // namespace sekisho::pm
