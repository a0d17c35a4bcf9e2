// SPDX-License-Identifier: Apache-2.0
// The files and the oracle's lines: docs/protocol/12-topology.md.  Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "topology/measurement.h"
#include "topology/tree.h"

namespace sekisho::topology {

struct HostList {
  std::vector<std::string> names;
  std::vector<int> cluster_of;             // empty unless every line names one
  std::vector<std::string> cluster_names;  // by number in cluster_of
};

// One host a line: NAME [CLUSTER].
absl::StatusOr<HostList> ParseHosts(std::string_view text, std::string_view source);

// Names of all vertices: the hosts' and invented ones of the switches.
std::vector<std::string> VertexNames(const Tree& tree, const std::vector<std::string>& hosts);

// "u v weight [relayed]" lines; the weight is the latency one way in microseconds.
std::string PrintTree(const Tree& tree, const std::vector<std::string>& hosts);

struct NamedTree {
  Tree tree;
  std::vector<std::string> names;  // of all vertices
};

// Without `hosts` every leaf is a host.
absl::StatusOr<NamedTree> ParseTree(std::string_view text, std::string_view source,
                                    const std::vector<std::string>& hosts = {});

// "M i j sets stop most t\n"
std::string PrintRequest(const Request& request, double start_us);

// "min lo hi pings dur [relayed]"; nothing if the line is something else.  An answer without pings,
// or one whose numbers cannot be, is one that was not ok.
std::optional<Answer> ParseAnswer(std::string_view line, const Request& request);

std::string PrintAnswer(const Answer& answer);

}  // namespace sekisho::topology
