// SPDX-License-Identifier: Apache-2.0
// A tree of hosts (docs/protocol/12-topology.md) as a network to place ranks on.  Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"

namespace sekisho::client {

// A network file: distances are latencies one way, in nanoseconds.  Node i is line i of `hosts`
// (NAME [...], a name may come again: slots of one host are no distance apart), or without `hosts`
// the i-th host by name.
absl::StatusOr<std::string> NetworkOfTree(std::string_view tree, const std::string& tree_file,
                                          std::string_view hosts, const std::string& hosts_file);

}  // namespace sekisho::client
