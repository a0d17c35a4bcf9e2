// SPDX-License-Identifier: Apache-2.0
// What sekisho topology show does.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/status.h"
#include "topology/tree.h"

namespace sekisho::client {

struct TopologyShowOptions {
  std::string tree;
  std::string hosts;
  std::string report;     // of infer, for confidences; empty: none
  std::string bandwidth;  // of bandwidth --json; empty: none
  bool is_dot = false;
  bool is_svg = false;
  bool is_json = false;
};

absl::Status ShowTopology(const TopologyShowOptions& options, std::ostream& out);

// `names` of all vertices.
nlohmann::json TreeJson(const topology::Tree& tree, const std::vector<std::string>& names);

}  // namespace sekisho::client
