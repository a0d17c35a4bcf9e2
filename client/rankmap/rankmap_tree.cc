// SPDX-License-Identifier: Apache-2.0
#include "client/rankmap/rankmap_tree.h"

#include <cmath>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "rankmap/errors.h"
#include "rankmap/network.h"
#include "rankmap/text.h"
#include "topology/text_format.h"

namespace sekisho::client {
namespace {

struct Host {
  std::string name;
  int line = 0;
};

std::vector<Host> FirstWords(std::string_view text) {
  std::vector<Host> hosts;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string_view::npos && line[begin] != '#') {
      hosts.push_back({std::string(line.substr(begin, line.find_first_of(" \t\r:", begin) - begin)), number});
    }
  }
  return hosts;
}

}  // namespace

absl::StatusOr<std::string> NetworkOfTree(std::string_view tree, const std::string& tree_file,
                                          std::string_view hosts, const std::string& hosts_file) {
  ASSIGN_OR_RETURN(const topology::NamedTree named, topology::ParseTree(tree, tree_file));
  std::unordered_map<std::string, int> vertex_of;
  for (int host = 0; host < named.tree.host_count; ++host) {
    vertex_of[named.names[host]] = host;
  }
  std::vector<Host> nodes;
  for (int host = 0; hosts_file.empty() && host < named.tree.host_count; ++host) {
    nodes.push_back({named.names[host], 1});
  }
  if (!hosts_file.empty()) {
    nodes = FirstWords(hosts);
  }
  constexpr size_t kMost = rankmap::Network::kMaxMatrixNodes;
  if (nodes.empty() || nodes.size() > kMost) {
    return rankmap::errors::BadFile(hosts_file.empty() ? tree_file : hosts_file,
                                    nodes.empty() ? 1 : nodes[kMost].line,
                                    fmt::format("expected 1 to {} hosts, saw {}", kMost, nodes.size()));
  }
  std::string text = fmt::format("matrix {}\n", nodes.size());
  for (const Host& from : nodes) {
    const auto at = vertex_of.find(from.name);
    if (at == vertex_of.end()) {
      return rankmap::errors::BadFile(hosts_file, from.line,
                                      fmt::format("{} is no host of {}", rankmap::Shown(from.name), tree_file));
    }
    const topology::Rooted rooted = topology::HangUp(named.tree, at->second);
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto to = vertex_of.find(nodes[i].name);  // one that is not there is answered in its turn
      const double rtt_us = to == vertex_of.end() ? 0 : rooted.depth_us[to->second];
      text += fmt::format("{}{}", i == 0 ? "" : " ", std::llround(rtt_us * 500));
    }
    text += '\n';
  }
  return text;
}

}  // namespace sekisho::client
