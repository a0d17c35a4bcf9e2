// SPDX-License-Identifier: Apache-2.0
// What a relay says of its endpoints, for people and programs.  Pure.
#pragma once

#include <string>

namespace sekisho::client {

// A report's pages, one a line, as one report, JSON.
std::string JoinReports(const std::string& text);

// A line for each endpoint; with `before`, an earlier report, also its bytes per second since, the busiest
// first.
std::string RelayTable(const std::string& report, const std::string& before, double seconds,
                       std::string& error);

}  // namespace sekisho::client
