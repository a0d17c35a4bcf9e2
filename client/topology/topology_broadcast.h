// SPDX-License-Identifier: Apache-2.0
// What sekisho topology broadcast does: a file goes from host to host along a tree, and is there
// only where its checksum is right.
#pragma once

#include <iosfwd>
#include <string>

#include "client/topology/topology_source.h"
#include "common/status.h"

namespace sekisho::client {

struct TopologyBroadcastOptions {
  TopologySourceOptions source;
  std::string tree;         // file; empty: it is inferred first
  std::string file;         // on the first host
  std::string destination;  // on all others
  std::string from;         // the first host; empty: the first of the hosts file
};

absl::Status BroadcastFile(const TopologyBroadcastOptions& options, std::ostream& out,
                           std::ostream& log);

}  // namespace sekisho::client
