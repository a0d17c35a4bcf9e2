// SPDX-License-Identifier: Apache-2.0
// What sekisho topology infer, simulate and matrix do.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

#include "client/topology/topology_source.h"
#include "common/status.h"

namespace sekisho::client {

struct TopologyInferOptions {
  TopologySourceOptions source;
  std::string out;
  std::string report;
  std::string method = "fast";
  uint64_t seed = 1;
  std::string known;  // a tree to start from; empty: none
  bool has_site_hints = false;
};

absl::Status InferTopology(const TopologyInferOptions& options, std::ostream& out,
                           std::ostream& log);

// Infers it and, each time when `wait` says so, brings what is in options.out up to date; what goes
// wrong then is said, and the file stays.
absl::Status KeepTopology(TopologyInferOptions options, const std::function<bool()>& wait,
                          std::ostream& out, std::ostream& log);

struct TopologyMatrixOptions {
  TopologySourceOptions source;
  std::string out;
  std::string method = "tree";
  double alpha = 5;
  uint64_t seed = 1;
};

// Lines "i j rtt_us" of all pairs: what was measured, and the rest from the tree or by the alpha
// rule.
absl::Status WriteTopologyMatrix(const TopologyMatrixOptions& options, std::ostream& out,
                                 std::ostream& log);

struct TopologySimulateOptions {
  std::string family;
  std::string truth;
  std::string hosts;
  std::string noise = "quiet";
  std::string method = "fast";
  std::string out;
  uint64_t seed = 1;
  bool has_site_hints = false;
  bool is_json = false;
};

absl::Status SimulateTopology(const TopologySimulateOptions& options, std::ostream& out);

}  // namespace sekisho::client
