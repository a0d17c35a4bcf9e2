// SPDX-License-Identifier: Apache-2.0
// Contexts of a measurement, and how they are waited for.
#pragma once

#include <memory>

#include "transport/pm/context.h"

namespace sekisho::pm {

// At its host, without a daemon.
std::unique_ptr<Context> OpenBenchContext(const Config& config, Waiting waiting);
// Waits for room.  If `more` follow, they leave together.
void Put(Context& context, NodeId to, Bytes message, Waiting waiting, bool more = false);
// Until something is there, or for a millisecond.
void WaitForPeer(Context& context, Waiting waiting);
// Prints by how many calls it sent, what it sent twice, and why.
void ExplainContext(Context& context);

}  // namespace sekisho::pm
