// SPDX-License-Identifier: Apache-2.0
// Copies from another process of this host.  Linux.
#pragma once

#include "transport/pm/remote_message.h"

namespace sekisho::pm {

// Reads `to.size()` bytes at the place if the 8 bytes at its proof are `secret`.  False: the kernel
// does not permit it, nothing is there, the secret is not, or it is this very process.
bool CopyNear(const NearPlace& from, std::uint64_t secret, MutableBytes to);

}  // namespace sekisho::pm
