// SPDX-License-Identifier: Apache-2.0
// What short runs have shown, kept for the next time that the same program runs at the same sites: ~/.cache/sekisho/profiles.
#pragma once

#include <string>
#include <vector>

#include "client/world/traffic_report.h"
#include "client/world/world_part.h"

namespace sekisho::client {

// Names program, arguments, environment, sites, ranks, and content of what the user's machine sends.
std::string ProfilePath(const std::vector<WorldPart>& parts);

// Nothing: there is none, or none that is whole.
absl::StatusOr<TrafficReport> LoadProfile(const std::string& path, int ranks);
absl::Status SaveProfile(const std::string& path, const TrafficReport& report);

}  // namespace sekisho::client
