// SPDX-License-Identifier: Apache-2.0
// See tree_file.h.
#include "deploy/wan/tree_file.h"

#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "deploy/wan/words.h"

namespace sekisho::wan {
namespace {

using WordList = std::vector<std::string>;

constexpr double kQueueUs = 10'000;  // a switch's port holds so much, or 64 KiB

struct Cables {
  std::unordered_map<std::string, int> vertices;
  std::vector<int> degree;

  int VertexOf(const std::string& name, Graph& graph) {
    const auto [entry, is_new] = vertices.try_emplace(name, graph.vertices.size());
    if (is_new) {
      graph.vertices.push_back(name);
      degree.push_back(0);
    }
    return entry->second;
  }
};

std::string ReadCable(const WordList& words, Cables& cables, Graph& graph) {
  if (words.size() < 5 || words.size() > 6) {
    return "expected 5 or 6 words (u v latency_uv_us latency_vu_us mbps [loss]), got " +
           std::to_string(words.size());
  }
  if (!IsName(words[0]) || !IsName(words[1]) || words[0] == words[1]) {
    return "expected two names of letters, digits, - _ and ., got '" + words[0] + "' and '" +
           words[1] + "'";
  }
  const std::optional<double> there_us = Number(words[2], 0, 1e8);
  if (!there_us) return "latency_uv_us: expected 0 to 100000000, got '" + words[2] + "'";
  const std::optional<double> back_us = Number(words[3], 0, 1e8);
  if (!back_us) return "latency_vu_us: expected 0 to 100000000, got '" + words[3] + "'";
  const std::optional<double> mbps = Number(words[4], 0, 1e6);
  if (!mbps) return "mbps: expected 0 to 1000000, got '" + words[4] + "'";
  const std::optional<double> loss = words.size() > 5 ? Number(words[5], 0, 1) : 0.0;
  if (!loss) return "loss: expected 0 to 1, got '" + words[5] + "'";
  const int u = cables.VertexOf(words[0], graph);
  const int v = cables.VertexOf(words[1], graph);
  ++cables.degree[u], ++cables.degree[v];
  LinkSettings settings{std::llround(*there_us * 1000), PsPerByte(*mbps),
                        QueueBytes(*mbps, kQueueUs), *loss};
  graph.edges.push_back({u, v, settings});
  settings.delay_ns = std::llround(*back_us * 1000);
  graph.edges.push_back({v, u, settings});
  return "";
}

Host MakeHost(const std::string& name, int vertex) {
  Host host;
  host.name = name;
  host.vertex = vertex;
  return host;
}

}  // namespace

std::optional<Graph> ParseTree(std::string_view text, const std::string& file, std::string& error) {
  Graph graph;
  Cables cables;
  error = ForEachLine(text, file,
                      [&](const WordList& words) { return ReadCable(words, cables, graph); });
  if (error.empty() && graph.edges.empty()) error = file + ": no cable in it";
  if (!error.empty()) return std::nullopt;
  for (size_t i = 0; i < graph.vertices.size(); ++i) {
    if (cables.degree[i] == 1) graph.hosts.push_back(MakeHost(graph.vertices[i], i));
  }
  return graph;
}

bool ParseHosts(std::string_view text, const std::string& file, Graph& graph, std::string& error) {
  std::unordered_map<std::string, int> vertices;
  for (size_t i = 0; i < graph.vertices.size(); ++i) vertices[graph.vertices[i]] = i;
  std::unordered_set<std::string> seen;
  graph.hosts.clear();
  error = ForEachLine(text, file, [&](const WordList& words) -> std::string {
    if (words.size() > 2) return "expected: NAME [CLUSTER]";
    const auto found = vertices.find(words[0]);
    if (found == vertices.end()) return "no cable ends at '" + words[0] + "'";
    if (!seen.insert(words[0]).second) return "host '" + words[0] + "' is there already";
    graph.hosts.push_back(MakeHost(words[0], found->second));
    if (words.size() == 2) graph.hosts.back().cluster = words[1];
    return "";
  });
  if (error.empty() && graph.hosts.empty()) error = file + ": no host in it";
  return error.empty();
}

bool NumberHosts(Graph& graph, const Prefix& base, std::string& error) {
  if (graph.hosts.empty()) {
    error = "no host: every vertex has two cables or more";
    return false;
  }
  if (graph.hosts.size() + 2 > static_cast<size_t>(base.last() - base.first()) + 1) {
    error = std::to_string(graph.hosts.size()) + " hosts do not fit into " +
            ToString(base.first()) + "/" + std::to_string(base.length);
    return false;
  }
  for (size_t i = 0; i < graph.hosts.size(); ++i) {
    const uint32_t address = base.first() + 1 + i;
    graph.hosts[i].prefixes = {{address, 32}};
    graph.hosts[i].address = ToString(address) + "/" + std::to_string(base.length);
  }
  return true;
}

}  // namespace sekisho::wan
