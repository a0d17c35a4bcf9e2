// SPDX-License-Identifier: Apache-2.0
// What the kernel knows of a TCP connection.
#pragma once

#include <cstdint>
#include <optional>

namespace sekisho::topology {

// How much of what was sent has arrived.  Nothing: the kernel does not say.
std::optional<uint64_t> AcknowledgedBytes(int socket);

// The shortest time from a packet to its acknowledgement, the handshake's among them.  It waits for
// no process at either end.  Nothing: the kernel does not say, or a packet had to be sent again.
std::optional<double> ShortestRoundTripUs(int socket);

}  // namespace sekisho::topology
