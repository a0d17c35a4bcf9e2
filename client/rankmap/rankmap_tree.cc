// SPDX-License-Identifier: Apache-2.0
#include "client/rankmap/rankmap_tree.h"

#include <cmath>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "rankmap/network.h"
#include "topology/text_format.h"

namespace sekisho::client {
namespace {

std::vector<std::string> FirstWords(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string_view::npos && line[begin] != '#') {
      words.emplace_back(line.substr(begin, line.find_first_of(" \t\r:", begin) - begin));
    }
  }
  return words;
}

}  // namespace

absl::StatusOr<std::string> NetworkOfTree(std::string_view tree, const std::string& tree_file,
                                          std::string_view hosts, const std::string& hosts_file) {
  ASSIGN_OR_RETURN(const topology::NamedTree named, topology::ParseTree(tree, tree_file));
  std::unordered_map<std::string, int> vertex_of;
  for (int host = 0; host < named.tree.host_count; ++host) {
    vertex_of[named.names[host]] = host;
  }
  std::vector<std::string> nodes(named.names.begin(), named.names.begin() + named.tree.host_count);
  if (!hosts_file.empty()) {
    nodes = FirstWords(hosts);
  }
  if (nodes.empty() || nodes.size() > rankmap::Network::kMaxMatrixNodes) {
    return absl::InvalidArgumentError(fmt::format("{}: expected 1 to {} hosts, saw {}",
                                                  hosts_file.empty() ? tree_file : hosts_file,
                                                  rankmap::Network::kMaxMatrixNodes, nodes.size()));
  }
  std::string text = fmt::format("matrix {}\n", nodes.size());
  for (const std::string& from : nodes) {
    const auto at = vertex_of.find(from);
    if (at == vertex_of.end()) {
      return absl::NotFoundError(
          fmt::format("{}: {} is no host of {}", hosts_file, from, tree_file));
    }
    const topology::Rooted rooted = topology::HangUp(named.tree, at->second);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto to = vertex_of.find(nodes[i]);
      if (to != vertex_of.end() && to->second != at->second && rooted.parent[to->second] < 0) {
        return absl::InvalidArgumentError(
            fmt::format("{}: no way from {} to {}", tree_file, from, nodes[i]));
      }
      const double rtt_us = to == vertex_of.end() ? 0 : rooted.depth_us[to->second];
      text += fmt::format("{}{}", i == 0 ? "" : " ", std::llround(rtt_us * 500));
    }
    text += '\n';
  }
  return text;
}

}  // namespace sekisho::client
