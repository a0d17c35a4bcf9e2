// SPDX-License-Identifier: Apache-2.0
// sekisho relay exec|forward|connect|list|top: docs/operations/relay.md.  The work is done by
// sekisho-nxporter, which is small enough to stay beside a program.
#pragma once

namespace CLI {
class App;
}

namespace sekisho::client {

struct Invocation;

void AddRelayVerb(CLI::App& app, Invocation& invocation);

}  // namespace sekisho::client
