// SPDX-License-Identifier: Apache-2.0
// See routes.h.
#include "deploy/wan/routes.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <utility>

namespace sekisho::wan {
namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
// A link costs something even without a delay: then fewer links win.
constexpr int64_t kHopNs = 1;

// Dijkstra's, backwards from the host: what the links that end at each vertex are is in `into`.
void RoutesTo(const Graph& graph, const std::vector<std::vector<int>>& into, int target,
              std::span<int> next) {
  std::vector<int64_t> far(graph.vertices.size(), kFar);
  using Entry = std::pair<int64_t, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  far[target] = 0;
  open.push({0, target});
  while (!open.empty()) {
    const auto [distance, vertex] = open.top();
    open.pop();
    if (distance != far[vertex]) continue;
    for (int index : into[vertex]) {
      const Edge& edge = graph.edges[index];
      const int64_t longer = distance + edge.settings.delay_ns + kHopNs;
      if (longer >= far[edge.from]) continue;
      far[edge.from] = longer;
      next[edge.from] = index;
      open.push({longer, edge.from});
    }
  }
}

}  // namespace

std::optional<Routes> Routes::Make(const Graph& graph, std::string& error) {
  Routes routes;
  routes.vertex_count_ = graph.vertices.size();
  routes.next_.assign(graph.hosts.size() * graph.vertices.size(), -1);
  std::vector<std::vector<int>> into(graph.vertices.size());
  for (size_t i = 0; i < graph.edges.size(); ++i) into[graph.edges[i].to].push_back(i);
  for (size_t host = 0; host < graph.hosts.size(); ++host) {
    const int target = graph.hosts[host].vertex;
    const std::span<int> next(&routes.next_[host * graph.vertices.size()], graph.vertices.size());
    if (graph.is_direct) {
      for (int index : into[target]) next[graph.edges[index].from] = index;
    } else {
      RoutesTo(graph, into, target, next);
    }
    for (const Host& other : graph.hosts) {
      if (other.vertex != target && next[other.vertex] < 0) {
        error = "there is no way from " + other.name + " to " + graph.hosts[host].name;
        return std::nullopt;
      }
    }
  }
  return routes;
}

int64_t PathDelayNs(const Graph& graph, const Routes& routes, int from_host, int to_host) {
  int64_t sum = 0;
  int vertex = graph.hosts[from_host].vertex;
  for (int index; (index = routes.Next(vertex, to_host)) >= 0; vertex = graph.edges[index].to) {
    sum += graph.edges[index].settings.delay_ns;
  }
  return sum;
}

}  // namespace sekisho::wan
