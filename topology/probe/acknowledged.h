// SPDX-License-Identifier: Apache-2.0
// How much of what a TCP socket sent has arrived, as the kernel knows it.
#pragma once

#include <cstdint>
#include <optional>

namespace sekisho::topology {

// Nothing: the kernel does not say.
std::optional<uint64_t> AcknowledgedBytes(int socket);

}  // namespace sekisho::topology
