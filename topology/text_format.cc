// SPDX-License-Identifier: Apache-2.0
#include "topology/text_format.h"

#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <system_error>
#include <unordered_map>

#include <fmt/format.h>

#include "topology/errors.h"

namespace sekisho::topology {
namespace {

constexpr size_t kMostHosts = 65536;
constexpr size_t kMostVertices = 4 * kMostHosts;
constexpr std::string_view kRelayed = " relayed";
constexpr double kLostUs = 1e6;  // time that a measurement without an answer took, unless told

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// Calls use(words, line number) for each line that is neither empty nor a comment.
template <typename Use>
absl::Status ForEachLine(std::string_view text, Use use) {
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = Words(text.substr(0, end));
    ++number;
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!words.empty() && words[0][0] != '#') {
      RETURN_IF_ERROR(use(words, number));
    }
  }
  return absl::OkStatus();
}

bool ParseNumber(std::string_view word, double& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

bool IsName(std::string_view word) {
  return word.size() <= 255 && word.find_first_of("\"'<>&\\") == std::string_view::npos;
}

}  // namespace

absl::StatusOr<HostList> ParseHosts(std::string_view text, std::string_view source) {
  HostList list;
  std::set<std::string, std::less<>> seen;
  std::map<std::string, int, std::less<>> clusters;
  RETURN_IF_ERROR(ForEachLine(
      text, [&](const std::vector<std::string_view>& words, size_t line) -> absl::Status {
        if (words.size() > 2 || !IsName(words[0]) || !IsName(words.back())) {
          return errors::BadLine(source, line, "NAME [CLUSTER]");
        }
        if (!seen.insert(std::string(words[0])).second) {
          return errors::BadLine(source, line,
                                 fmt::format("another host: {} was named before", words[0]));
        }
        if (list.names.size() == kMostHosts) {
          return errors::BadLine(source, line, fmt::format("at most {} hosts", kMostHosts));
        }
        list.names.emplace_back(words[0]);
        if (words.size() == 2) {
          const auto [place, is_new] =
              clusters.try_emplace(std::string(words[1]), static_cast<int>(clusters.size()));
          if (is_new) {
            list.cluster_names.emplace_back(words[1]);
          }
          list.cluster_of.push_back(place->second);
        }
        return absl::OkStatus();
      }));
  if (list.names.empty()) {
    return errors::BadFile(source, "names no host");
  }
  if (list.cluster_of.size() != list.names.size()) {
    list.cluster_of.clear();
    list.cluster_names.clear();
  }
  return list;
}

std::vector<std::string> VertexNames(const Tree& tree, const std::vector<std::string>& hosts) {
  const std::set<std::string> taken(hosts.begin(), hosts.end());
  std::string prefix = "s";
  while (taken.lower_bound(prefix) != taken.end() &&
         taken.lower_bound(prefix)->starts_with(prefix) && prefix.size() < 300) {
    prefix += prefix == "s" ? "w" : "_";
  }
  std::vector<std::string> names = hosts;
  for (int i = tree.host_count; i < tree.vertex_count; ++i) {
    names.push_back(fmt::format("{}{}", prefix, i - tree.host_count));
  }
  return names;
}

std::string PrintTree(const Tree& tree, const std::vector<std::string>& hosts) {
  const std::vector<std::string> names = VertexNames(tree, hosts);
  std::string text;
  for (const Link& link : tree.links) {
    text += fmt::format("{} {} {:.3f}{}\n", names[link.u], names[link.v], link.rtt_us / 2,
                        link.is_relayed ? kRelayed : "");
  }
  return text;
}

absl::StatusOr<NamedTree> ParseTree(std::string_view text, std::string_view source,
                                    const std::vector<std::string>& hosts) {
  struct Edge {
    std::string_view u, v;
    double latency_us;
    bool is_relayed;
    size_t line = 0;
  };
  std::vector<Edge> edges;
  std::map<std::string_view, int> degree;
  RETURN_IF_ERROR(ForEachLine(
      text, [&](const std::vector<std::string_view>& words, size_t line) -> absl::Status {
        Edge edge{words[0], words.size() > 1 ? words[1] : "", 0, words.size() == 4, line};
        if (words.size() < 2 || words.size() > 4 || !IsName(edge.u) || !IsName(edge.v) ||
            edge.u == edge.v || (edge.is_relayed && words[3] != "relayed") ||
            (words.size() >= 3 && (!ParseNumber(words[2], edge.latency_us) ||
                                   !(edge.latency_us >= 0 && edge.latency_us < 1e12)))) {
          return errors::BadLine(source, line, "NAME NAME [LATENCY_US [relayed]]");
        }
        ++degree[edge.u];
        ++degree[edge.v];
        edges.push_back(edge);
        if (degree.size() > kMostVertices) {
          return errors::BadLine(source, line, fmt::format("at most {} names", kMostVertices));
        }
        return absl::OkStatus();
      }));
  NamedTree result;
  std::unordered_map<std::string_view, int> number;
  for (const std::string& host : hosts) {
    number.emplace(host, static_cast<int>(result.names.size()));
    result.names.push_back(host);
  }
  for (const auto& [name, count] : degree) {
    if (hosts.empty() && count == 1) {
      number.emplace(name, static_cast<int>(result.names.size()));
      result.names.emplace_back(name);
    }
  }
  result.tree.host_count = static_cast<int>(result.names.size());
  for (const auto& [name, count] : degree) {
    if (number.emplace(name, static_cast<int>(result.names.size())).second) {
      result.names.emplace_back(name);
    }
  }
  result.tree.vertex_count = static_cast<int>(result.names.size());
  for (const Edge& edge : edges) {
    result.tree.links.push_back(
        {number.at(edge.u), number.at(edge.v), 2 * edge.latency_us, 1, edge.is_relayed});
  }
  // Which names hang together, line by line: each line joins two parts, at the end there is one.
  std::vector<int> part(result.names.size());
  std::iota(part.begin(), part.end(), 0);
  const auto part_of = [&](int vertex) {
    while (part[vertex] != vertex) {
      vertex = part[vertex] = part[part[vertex]];
    }
    return vertex;
  };
  for (const Edge& edge : edges) {
    const int u = part_of(number.at(edge.u));
    const int v = part_of(number.at(edge.v));
    if (u == v) {
      return errors::NotOneTree(source, edge.line,
                                fmt::format("another way from {} to {}", edge.u, edge.v));
    }
    part[v] = u;
  }
  for (const Edge& edge : edges) {
    if (part_of(number.at(edge.u)) != part_of(number.at(edges[0].u))) {
      return errors::NotOneTree(source, edge.line,
                                fmt::format("no way from {} to {}", edges[0].u, edge.u));
    }
  }
  return result;
}

std::string PrintRequest(const Request& request, double start_us) {
  return fmt::format("M {} {} {} {} {} {}\n", request.from, request.to, request.sets, request.stop,
                     request.most, static_cast<long long>(std::ceil(start_us)));
}

std::string PrintAnswer(const Answer& answer) {
  return fmt::format("{:.3f} {:.3f} {:.3f} {} {:.3f}{}\n", answer.min_us, answer.low_us,
                     answer.high_us, answer.pings, answer.duration_us,
                     answer.is_relayed ? kRelayed : "");
}

std::optional<Answer> ParseAnswer(std::string_view line, const Request& request) {
  const std::vector<std::string_view> words = Words(line);
  double values[5];
  const bool is_relayed = words.size() == 6 && words[5] == "relayed";
  if (words.size() != 5 && !is_relayed) {
    return std::nullopt;
  }
  for (int i = 0; i < 5; ++i) {
    if (!ParseNumber(words[i], values[i])) {
      return std::nullopt;
    }
  }
  Answer answer{.is_ok = true,
                .min_us = values[0],
                .low_us = values[1],
                .high_us = values[2],
                .pings = 0,
                .duration_us = values[4],
                .is_relayed = is_relayed};
  const double most = static_cast<double>(request.sets) * request.most;
  const auto is_possible = [](double value) { return value >= 0 && value < 1e10; };
  answer.is_ok = is_possible(values[0]) && values[0] > 0 && is_possible(values[1]) &&
                 is_possible(values[2]) && values[1] <= values[2] && values[3] >= 1 &&
                 values[3] <= most && is_possible(values[4]);
  answer.pings = values[3] >= 0 && values[3] <= most ? static_cast<int>(values[3]) : 0;
  if (!is_possible(values[4])) {
    answer.duration_us = kLostUs;
  }
  if (!answer.is_ok) {
    answer.min_us = answer.low_us = answer.high_us = 0;
  }
  return answer;
}

}  // namespace sekisho::topology
