// SPDX-License-Identifier: Apache-2.0
#include "rankmap/outputs.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include <fmt/ranges.h>

#include "rankmap/errors.h"
#include "rankmap/network.h"
#include "rankmap/text.h"

namespace sekisho::rankmap {
namespace {

// Ranks in the order of their nodes.
std::vector<int> ByNode(std::span<const int> nodes) {
  std::vector<int> ranks(nodes.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return nodes[a] < nodes[b]; });
  return ranks;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseHosts(std::string_view text, std::string_view file) {
  LineReader reader(text, file);
  std::vector<std::string_view> words;
  std::vector<std::string> hosts;
  while (reader.Next(words)) {
    const bool is_name = std::all_of(words[0].begin(), words[0].end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
    });
    if (words.size() != 1 || !is_name || words[0].size() > 255) {
      return reader.Error(fmt::format("'{}': expected one host name", Shown(words[0])));
    }
    if (hosts.size() == static_cast<size_t>(Network::kMaxNodes)) {
      return reader.Error("too many hosts");
    }
    hosts.emplace_back(words[0]);
  }
  return hosts;
}

std::string PrintRankfile(std::span<const int> nodes, std::span<const std::string> hosts) {
  std::vector<int> used(hosts.size());
  std::string text;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    fmt::format_to(std::back_inserter(text), "rank {}={} slot={}\n", rank, hosts[nodes[rank]],
                   used[nodes[rank]]++);
  }
  return text;
}

std::string PrintHostList(std::span<const int> nodes, std::span<const std::string> hosts) {
  std::string text;
  for (const int node : nodes) {
    text += hosts[node];
    text += '\n';
  }
  return text;
}

std::string PrintCrayRankOrder(std::span<const int> nodes) {
  std::string text;
  const std::vector<int> ranks = ByNode(nodes);
  for (size_t i = 0; i < ranks.size(); ++i) {
    // One node a line; Cray MPICH joins lines itself.
    const bool ends = i + 1 == ranks.size() || nodes[ranks[i + 1]] != nodes[ranks[i]];
    fmt::format_to(std::back_inserter(text), "{}{}", ranks[i], ends ? "\n" : ",");
  }
  return text;
}

std::string PrintRmattMap(std::span<const int> nodes, int node_count) {
  std::vector<std::vector<int>> ranks_of(node_count);
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    ranks_of[nodes[rank]].push_back(static_cast<int>(rank));
  }
  std::string text;
  for (const std::vector<int>& ranks : ranks_of) {
    text += ranks.empty() ? "-1" : fmt::format("{}", fmt::join(ranks, ","));
    text += '\n';
  }
  return text;
}

}  // namespace sekisho::rankmap
