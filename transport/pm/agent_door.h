// SPDX-License-Identifier: Apache-2.0
// A job's agent starts sekisho-pmd when somebody asks for it: docs/protocol/7-nodes.md, "PM".
#pragma once

#include <array>

namespace sekisho::pm {

// `agent` is "JOB:PATH", as in PM_AGENT.  0 with the path of the daemon's socket, or without one
// where this node has no daemon; else errno: ECONNREFUSED if the agent will not, ETIMEDOUT.
int AskAgent(const char* agent, std::array<char, 108>& daemon);

}  // namespace sekisho::pm
