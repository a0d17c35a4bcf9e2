// SPDX-License-Identifier: Apache-2.0
// sekisho relay exec|forward|connect|list|top: docs/operations/relay.md.  The work is done by
// sekisho-nxporter, which is small enough to stay beside a program.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace sekisho::client {

struct Invocation;

void AddRelayVerb(CLI::App& app, Invocation& invocation);

// The relay's REPORT as a table; "" and `error` if it cannot be read.  With `before`, the report of
// `seconds` ago, there are bytes per second, and the busiest come first.
std::string RelayTable(const std::string& report, const std::string& before, double seconds,
                       std::string& error);

}  // namespace sekisho::client
