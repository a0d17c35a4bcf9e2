// SPDX-License-Identifier: Apache-2.0
#include "rankmap/bound.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace sekisho::rankmap {
namespace {

// For every k, no k other slots are nearer to any slot than the first k of these.
std::vector<int64_t> NearestDistances(const Network& network, int most) {
  const int nodes = network.nodes();
  std::vector<int64_t> nearest;
  const bool is_uniform = network.kind() == Network::Kind::kTree ||
                          (network.kind() == Network::Kind::kGrid &&
                           std::all_of(network.grid().wrap.begin(), network.grid().wrap.end(),
                                       [](bool w) { return w; }));
  const int sources = is_uniform ? 1 : nodes;
  if (!is_uniform && nodes > 4096) {
    // Too many to look at one by one: a mesh is nowhere denser than the torus around it.
    GridShape shape = network.grid();
    if (network.kind() == Network::Kind::kGrid) {
      for (int& size : shape.dims) {
        size = 2 * size;
      }
      shape.wrap.assign(shape.wrap.size(), true);
      if (auto torus = Network::MakeGrid(shape);
          torus.ok() && torus->set_capacity(network.capacity()).ok()) {
        return NearestDistances(*torus, most);
      }
    }
    return std::vector<int64_t>(most, 0);
  }
  for (int from = 0; from < sources; ++from) {
    std::vector<int64_t> distances;
    distances.reserve(nodes);
    for (int to = 0; to < nodes; ++to) {
      if (to != from) {
        distances.push_back(std::min(network.Distance(from, to), network.Distance(to, from)));
      }
    }
    const size_t keep = std::min<size_t>(distances.size(), most);
    std::partial_sort(distances.begin(), distances.begin() + keep, distances.end());
    distances.resize(keep);
    if (nearest.empty()) {
      nearest = distances;
    }
    for (size_t i = 0; i < keep; ++i) {
      nearest[i] = std::min(nearest[i], distances[i]);
    }
  }
  // The other slots of the own node first, then `capacity` for each other node.
  std::vector<int64_t> by_slot(network.capacity() - 1, 0);
  for (const int64_t distance : nearest) {
    by_slot.insert(by_slot.end(), network.capacity(), distance);
    if (by_slot.size() >= static_cast<size_t>(most)) {
      break;
    }
  }
  by_slot.resize(std::max<size_t>(by_slot.size(), most), by_slot.empty() ? 0 : by_slot.back());
  return by_slot;
}

// Each rank's heaviest partners at the least distances; every pair is seen from both ends.
int64_t DegreeBound(const Graph& graph, const std::vector<int64_t>& nearest) {
  unsigned __int128 twice = 0;
  std::vector<int64_t> weights;
  for (int v = 0; v < graph.size(); ++v) {
    weights.clear();
    for (const Graph::Arc& arc : graph.Of(v)) {
      weights.push_back(arc.both());
    }
    std::sort(weights.rbegin(), weights.rend());
    for (size_t i = 0; i < weights.size(); ++i) {
      twice += static_cast<unsigned __int128>(weights[i]) * nearest[i];
    }
  }
  return static_cast<int64_t>((twice + 1) / 2) * graph.unit;
}

int LargestDegree(const Graph& graph) {
  size_t largest = 0;
  for (int v = 0; v < graph.size(); ++v) {
    largest = std::max(largest, graph.Of(v).size());
  }
  return static_cast<int>(largest);
}

// What one step (or all of them) puts at least on some link.
int64_t LinkBound(const Pattern& pattern, const Network& network, int step, int64_t hop_bytes) {
  if (network.links() == 0 || network.capacity() > 1) {
    return 0;  // heavy partners may share a node
  }
  std::vector<int64_t> out(pattern.ranks());
  std::vector<int64_t> in(pattern.ranks());
  int64_t largest = 0;
  int64_t pair = 0;
  const Message* last = nullptr;
  for (const Message& m : pattern.messages()) {
    if (m.source == m.target || (step >= 0 && m.step != step)) {
      continue;
    }
    const bool again = last != nullptr && last->source == m.source && last->target == m.target;
    pair = again ? pair + m.bytes : m.bytes;
    last = &m;
    largest = std::max(largest, pair);
    out[m.source] += m.bytes;
    in[m.target] += m.bytes;
  }
  if (network.kind() != Network::Kind::kGrid) {
    return network.diameter() > 0 ? largest : 0;
  }
  int ways = 0;
  for (size_t d = 0; d < network.grid().dims.size(); ++d) {
    const int size = network.grid().dims[d];
    ways += size == 1 ? 0 : 2;
  }
  const int64_t most =
      std::max(*std::max_element(out.begin(), out.end()), *std::max_element(in.begin(), in.end()));
  if (ways > 0) {
    largest = std::max(largest, (most + ways - 1) / ways);
  }
  return std::max(largest, (hop_bytes + network.links() - 1) / network.links());
}

// The assignment of rows to columns of least sum (shortest augmenting paths).
int64_t Assignment(const std::vector<int64_t>& cost, int n) {
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 4;
  std::vector<int64_t> u(n + 1);
  std::vector<int64_t> v(n + 1);
  std::vector<int> match(n + 1);
  std::vector<int> way(n + 1);
  for (int i = 1; i <= n; ++i) {
    match[0] = i;
    int column = 0;
    std::vector<int64_t> least(n + 1, kFar);
    std::vector<char> used(n + 1);
    do {
      used[column] = 1;
      const int row = match[column];
      int64_t delta = kFar;
      int next = 0;
      for (int j = 1; j <= n; ++j) {
        if (used[j] != 0) {
          continue;
        }
        const int64_t reduced = cost[(row - 1) * n + j - 1] - u[row] - v[j];
        if (reduced < least[j]) {
          least[j] = reduced;
          way[j] = column;
        }
        if (least[j] < delta) {
          delta = least[j];
          next = j;
        }
      }
      for (int j = 0; j <= n; ++j) {
        if (used[j] != 0) {
          u[match[j]] += delta;
          v[j] -= delta;
        } else {
          least[j] -= delta;
        }
      }
      column = next;
    } while (match[column] != 0);
    for (; column != 0; column = way[column]) {
      match[column] = match[way[column]];
    }
  }
  return -v[0];
}

}  // namespace

double ObjectiveBound(const Bounds& bounds, Objective objective, Weight qap_weight) {
  Values least;
  least.hop_bytes = bounds.hop_bytes;
  least.hops_sum = bounds.hops_sum;
  least.max_link = bounds.max_link;
  least.step_sum = bounds.step_sum;
  return ObjectiveValue(least, objective, qap_weight);
}

Bounds LowerBounds(const Pattern& pattern, const Network& network) {
  Bounds bounds;
  const Graph bytes = MakeGraph(pattern, Weight::kBytes);
  const std::vector<int64_t> nearest =
      NearestDistances(network, std::max(LargestDegree(bytes), 1) + network.capacity());
  bounds.hop_bytes = DegreeBound(bytes, nearest);
  const Graph counts = MakeGraph(pattern, Weight::kMessages);
  if (LargestDegree(counts) <= static_cast<int>(nearest.size())) {
    bounds.hops_sum = DegreeBound(counts, nearest);
  }
  bounds.max_link = LinkBound(pattern, network, -1, bounds.hop_bytes);
  for (int step = 0; step < pattern.steps() && network.links() > 0; ++step) {
    if (pattern.steps() == 1) {
      bounds.step_sum = bounds.max_link;
    } else if (static_cast<int64_t>(pattern.steps()) * pattern.messages().size() < 2e9) {
      bounds.step_sum += LinkBound(pattern, network, step, 0);
    }
  }
  return bounds;
}

int64_t QapBound(const QapInstance& instance) {
  const int n = instance.size;
  const auto sorted = [n](const std::vector<int64_t>& matrix, bool rising) {
    std::vector<std::vector<int64_t>> rows(n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        if (j != i) {
          rows[i].push_back(matrix[i * n + j]);
        }
      }
      std::sort(rows[i].begin(), rows[i].end());
      if (!rising) {
        std::reverse(rows[i].begin(), rows[i].end());
      }
    }
    return rows;
  };
  const auto a = sorted(instance.a, true);
  const auto b = sorted(instance.b, false);
  std::vector<int64_t> cost(n * n);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < n; ++k) {
      cost[i * n + k] = std::inner_product(a[i].begin(), a[i].end(), b[k].begin(),
                                           instance.a[i * n + i] * instance.b[k * n + k]);
    }
  }
  return Assignment(cost, n);
}

}  // namespace sekisho::rankmap
