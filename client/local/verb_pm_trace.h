// SPDX-License-Identifier: Apache-2.0
// sekisho pm trace: docs/operations/pm.md, "Seeing the datagrams".
#pragma once

namespace CLI {
class App;
}

namespace sekisho::client {

struct Invocation;

void AddPmTraceVerb(CLI::App& pm, Invocation& invocation);

}  // namespace sekisho::client
