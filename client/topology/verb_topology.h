// SPDX-License-Identifier: Apache-2.0
// sekisho topology infer|show|simulate|matrix: the network as a tree.
#pragma once

namespace CLI {
class App;
}

namespace sekisho::client {

void AddTopologyVerb(CLI::App& app, int& exit_code);

}  // namespace sekisho::client
