// SPDX-License-Identifier: Apache-2.0
// The files of sekisho rankmap: read whole with a limit, written beside and renamed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "rankmap/evaluate.h"
#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/placement.h"

namespace sekisho::client {

absl::StatusOr<std::string> ReadFile(const std::string& path);

// Never leaves a part of a file: a temporary in the same directory, then a rename.
absl::Status WriteFile(const std::string& path, std::string_view text);

// A file, a tree that `sekisho topology infer` wrote (TREE.edges, or TREE.edges,HOSTS: node i is line i of HOSTS), or a
// network by itself such as torus:16x16x16.
absl::StatusOr<rankmap::Network> ReadNetwork(const std::string& source);
// The same as the text of a network file, if it is one or is made from a tree.
absl::StatusOr<std::string> ReadNetworkText(const std::string& source);

// Our text, METIS .graph, Scotch .grf, QAPLIB .dat (its first matrix), OTF2's traces.otf2, or a directory or
// prefix of pml_monitoring files, by their names.
absl::StatusOr<rankmap::Pattern> ReadPattern(const std::string& path);

// Whether the pattern fits the network; what does not is named by its place in the pattern's file.
struct ProblemFiles {
  const std::string& pattern;
  const std::string& network;
};
absl::Status CheckFit(const ProblemFiles& files, const rankmap::Pattern& pattern, const rankmap::Network& network,
                      rankmap::Objective objective);

// Mistakes by FILE:LINE.
absl::StatusOr<rankmap::Placement> ReadPlacement(const std::string& path,
                                                 const rankmap::Pattern& pattern,
                                                 const rankmap::Network& network);
// The same as the file says it; `ranks`: how many there must be.
absl::StatusOr<std::vector<int>> ReadNodes(const std::string& path, const rankmap::Network& network,
                                           std::optional<int> ranks);
// Names of at least so many nodes.
absl::StatusOr<std::vector<std::string>> ReadHosts(const std::string& path, int nodes);

}  // namespace sekisho::client
