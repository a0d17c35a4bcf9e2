// SPDX-License-Identifier: Apache-2.0
// See pairs_file.h.
#include "deploy/wan/pairs_file.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "deploy/wan/words.h"

namespace sekisho::wan {
namespace {

using WordList = std::vector<std::string>;

std::string Wrong(const std::string& key, const std::string& expected, const std::string& got) {
  return "key '" + key + "': expected " + expected + ", got '" + got + "'";
}

// Gives `take` key and value of each word from `first` on; it returns what it expected of the
// value, "?" if it does not know the key, "" if all is well.
template <typename Take>
std::string TakeKeys(const WordList& words, size_t first, Take take) {
  std::set<std::string> seen;
  for (size_t i = first; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos) return "expected KEY=VALUE, got '" + words[i] + "'";
    const std::string key = words[i].substr(0, equals);
    const std::string value = words[i].substr(equals + 1);
    if (!seen.insert(key).second) return "key '" + key + "' is given twice";
    const std::string expected = take(key, value);
    if (expected == "?") return "key '" + key + "' is not known";
    if (!expected.empty()) return Wrong(key, expected, value);
  }
  return "";
}

int HostNamed(const Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.hosts.begin(), graph.hosts.end(),
                                  [&](const Host& host) { return host.name == name; });
  return found == graph.hosts.end() ? -1 : static_cast<int>(found - graph.hosts.begin());
}

std::string ReadNode(const WordList& words, Graph& graph) {
  if (words.size() < 2 || !IsName(words[1])) return "expected: node NAME KEY=VALUE...";
  if (HostNamed(graph, words[1]) >= 0) return "node '" + words[1] + "' is there already";
  Host host;
  host.name = words[1];
  host.vertex = static_cast<int>(graph.vertices.size());
  host.device.clear();
  const std::string wrong =
      TakeKeys(words, 2, [&](const std::string& key, const std::string& value) -> std::string {
        if (key == "device") {
          host.device = value;
          return IsName(value) && value.size() <= 15 ? "" : "a device name of 1 to 15 characters";
        }
        if (key == "prefix") {
          for (const std::string& text : Split(value, ',')) {
            if (!ParsePrefix(text, host.prefixes.emplace_back())) return "ADDRESS/LENGTH[,...]";
          }
          return "";
        }
        if (key == "netns") {
          host.netns = value;
          return value.starts_with('/') ? "" : "an absolute path";
        }
        if (key == "address") {
          Prefix address;
          host.address = value;
          return ParsePrefix(value, address) ? "" : "ADDRESS/LENGTH";
        }
        return "?";
      });
  if (!wrong.empty()) return wrong;
  if (host.device.empty()) return "key 'device' is missing";
  if (host.prefixes.empty()) return "key 'prefix' is missing";
  graph.vertices.push_back(host.name);
  graph.hosts.push_back(std::move(host));
  return "";
}

std::string ReadLink(const WordList& words, Graph& graph) {
  if (words.size() < 3) return "expected: link FROM TO KEY=VALUE...";
  Edge edge;
  edge.from = HostNamed(graph, words[1]);
  edge.to = HostNamed(graph, words[2]);
  for (int i : {1, 2}) {
    if ((i == 1 ? edge.from : edge.to) < 0) return "no node '" + words[i] + "' above this line";
  }
  if (edge.from == edge.to) return "a link joins two nodes";
  for (const Edge& other : graph.edges) {
    if (other.from == edge.from && other.to == edge.to) return "this link is there already";
  }
  double delay_us = 0, rate_mbps = 0;
  std::optional<double> queue_kib;
  const auto number = [](const std::string& value, double min, double max, double& out) {
    const std::optional<double> read = Number(value, min, max);
    out = read.value_or(0);
    return read.has_value();
  };
  const std::string wrong =
      TakeKeys(words, 3, [&](const std::string& key, const std::string& value) -> std::string {
        if (key == "delay_us") {
          return number(value, 0, 1e8, delay_us) ? "" : "microseconds from 0 to 100000000";
        }
        if (key == "rate_mbps") {
          return number(value, 0.001, 1e6, rate_mbps) ? "" : "Mb/s from 0.001 to 1000000";
        }
        if (key == "loss") {
          return number(value, 0, 1, edge.settings.loss) ? "" : "a probability from 0 to 1";
        }
        if (key == "queue_kib") {
          return number(value, 1, 1e6, queue_kib.emplace()) ? "" : "KiB from 1 to 1000000";
        }
        return "?";
      });
  if (!wrong.empty()) return wrong;
  edge.settings.delay_ns = std::llround(delay_us * 1000);
  edge.settings.ps_per_byte = PsPerByte(rate_mbps);
  // One bandwidth-delay product, as a careful operator would set it.
  edge.settings.queue_bytes = queue_kib ? std::llround(*queue_kib * 1024)
                                        : QueueBytes(rate_mbps, std::max(10'000.0, 2 * delay_us));
  graph.edges.push_back(edge);
  return "";
}

}  // namespace

std::optional<Graph> ParsePairs(std::string_view text, const std::string& file,
                                std::string& error) {
  Graph graph;
  graph.is_direct = true;
  error = ForEachLine(text, file, [&](const WordList& words) -> std::string {
    if (words[0] == "node") return ReadNode(words, graph);
    if (words[0] == "link") return ReadLink(words, graph);
    return "expected 'node' or 'link', got '" + words[0] + "'";
  });
  if (!error.empty()) return std::nullopt;
  if (graph.hosts.size() < 2) {
    error = file + ": expected two nodes or more, got " + std::to_string(graph.hosts.size());
    return std::nullopt;
  }
  return graph;
}

}  // namespace sekisho::wan
