// SPDX-License-Identifier: Apache-2.0
// What sekisho topology bandwidth does: fills the links of a tree, a level at a time.
#pragma once

#include <iosfwd>
#include <string>

#include "client/topology/topology_source.h"
#include "common/status.h"

namespace sekisho::client {

struct TopologyBandwidthOptions {
  TopologySourceOptions source;
  std::string tree;
  int transfer_ms = 500;
  bool is_json = false;
};

absl::Status MapBandwidth(const TopologyBandwidthOptions& options, std::ostream& out,
                          std::ostream& log);

}  // namespace sekisho::client
