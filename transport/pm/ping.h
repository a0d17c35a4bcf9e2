// SPDX-License-Identifier: Apache-2.0
// Asks a node for a CHALLENGE, which it answers without keeping anything, and takes the time.
#pragma once

#include <system_error>
#include <vector>

#include "transport/pm/job_file.h"

namespace sekisho::pm {

struct PingResult {
  std::uint32_t sent = 0, received = 0, duplicates = 0, reordered = 0;
  std::vector<Nanos> times;  // ascending
};

// As node `as` of the job, from a port of our own: a running node `as` is not disturbed.
std::error_code Ping(const JobFile& job, NodeId as, NodeId to, std::uint32_t count, Nanos interval,
                     PingResult& result);

}  // namespace sekisho::pm
