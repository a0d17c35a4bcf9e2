// SPDX-License-Identifier: Apache-2.0
// sekisho pm list|top|stop|go|drop|save|restore|ping|trace|bench: docs/operations/pm.md.
#pragma once

namespace CLI {
class App;
}

namespace sekisho::client {

struct Invocation;

void AddPmVerb(CLI::App& app, Invocation& invocation);

}  // namespace sekisho::client
