// SPDX-License-Identifier: Apache-2.0
#include "rankmap/lattice.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace sekisho::rankmap {
namespace {

constexpr size_t kMostNeighbours = 8;
constexpr size_t kMostDimensions = 5;
constexpr size_t kMostSkeletons = 6;

class Sets {
 public:
  explicit Sets(size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0u); }
  uint32_t Find(uint32_t x) {
    while (parent_[x] != x) {
      x = parent_[x] = parent_[parent_[x]];
    }
    return x;
  }
  void Join(uint32_t a, uint32_t b) { parent_[Find(a)] = Find(b); }

 private:
  std::vector<uint32_t> parent_;
};

// The graph of the edges of at least some weight; edges have numbers.
struct Skeleton {
  struct Arc {
    uint32_t peer;
    uint32_t edge;
    int64_t weight;
  };
  std::vector<std::vector<Arc>> arcs;
  uint32_t edges = 0;

  const Arc* Find(uint32_t u, uint32_t v) const {
    for (const Arc& arc : arcs[u]) {
      if (arc.peer == v) {
        return &arc;
      }
    }
    return nullptr;
  }
};

std::optional<Skeleton> MakeSkeleton(const Graph& graph, int ranks, int64_t least) {
  Skeleton s;
  s.arcs.resize(ranks);
  for (int u = 0; u < ranks; ++u) {
    for (const Graph::Arc& arc : graph.Of(u)) {
      if (arc.both() < least) {
        continue;
      }
      if (s.arcs[u].size() == kMostNeighbours) {
        return std::nullopt;
      }
      const uint32_t peer = arc.peer;
      const uint32_t edge = peer > static_cast<uint32_t>(u) ? s.edges++ : s.Find(peer, u)->edge;
      s.arcs[u].push_back({peer, edge, arc.both()});
    }
    if (s.arcs[u].empty()) {
      return std::nullopt;
    }
  }
  return s;
}

// The dimension of every edge.
std::optional<std::vector<int>> Dimensions(const Skeleton& s, size_t& count) {
  Sets sets(s.edges);
  for (uint32_t u = 0; u < s.arcs.size(); ++u) {
    for (size_t i = 0; i < s.arcs[u].size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const auto& v = s.arcs[u][i];
        const auto& w = s.arcs[u][j];
        int corners = 0;
        const Skeleton::Arc* v_side = nullptr;
        const Skeleton::Arc* w_side = nullptr;
        for (const auto& x : s.arcs[v.peer]) {
          if (x.peer != u) {
            if (const auto* other = s.Find(w.peer, x.peer); other != nullptr) {
              ++corners;
              v_side = &x;
              w_side = other;
            }
          }
        }
        if (corners == 0) {
          sets.Join(v.edge, w.edge);
        } else if (corners == 1) {
          sets.Join(v.edge, w_side->edge);
          sets.Join(w.edge, v_side->edge);
        } else {
          return std::nullopt;
        }
      }
    }
  }
  std::map<uint32_t, int> number;
  std::vector<int> dimension(s.edges);
  for (uint32_t e = 0; e < s.edges; ++e) {
    dimension[e] = number.emplace(sets.Find(e), static_cast<int>(number.size())).first->second;
    if (number.size() > kMostDimensions) {
      return std::nullopt;
    }
  }
  count = number.size();
  return dimension;
}

// Numbers the slabs across dimension d along their path or ring.
bool Coordinates(const Skeleton& s, const std::vector<int>& dimension, int d, Lattice& lattice) {
  const size_t n = s.arcs.size();
  Sets sets(n);
  for (uint32_t u = 0; u < n; ++u) {
    for (const auto& arc : s.arcs[u]) {
      if (dimension[arc.edge] != d) {
        sets.Join(u, arc.peer);
      }
    }
  }
  std::map<uint32_t, std::set<uint32_t>> next;
  double weight = 0;
  for (uint32_t u = 0; u < n; ++u) {
    for (const auto& arc : s.arcs[u]) {
      if (dimension[arc.edge] == d) {
        const uint32_t a = sets.Find(u);
        const uint32_t b = sets.Find(arc.peer);
        if (a == b) {
          return false;
        }
        next[a].insert(b);
        weight += static_cast<double>(arc.weight) / 2;
        if (next[a].size() > 2) {
          return false;
        }
      }
    }
  }
  if (next.empty()) {
    return false;
  }
  uint32_t first = next.begin()->first;
  bool is_ring = true;
  for (const auto& [slab, others] : next) {
    if (others.size() == 1) {
      first = slab;
      is_ring = false;
    }
  }
  std::map<uint32_t, int> order;
  for (uint32_t slab = first; order.emplace(slab, static_cast<int>(order.size())).second;) {
    for (const uint32_t other : next[slab]) {
      if (order.count(other) == 0) {
        slab = other;
        break;
      }
    }
  }
  if (order.size() != next.size()) {
    return false;
  }
  lattice.dims.push_back(static_cast<int>(order.size()));
  lattice.wrap.push_back(is_ring && order.size() > 2);
  lattice.weights.push_back(weight);
  for (uint32_t u = 0; u < n; ++u) {
    const auto found = order.find(sets.Find(u));
    if (found == order.end()) {
      return false;
    }
    lattice.at[u].push_back(found->second);
  }
  return true;
}

std::optional<Lattice> TrySkeleton(const Graph& graph, int ranks, int64_t least) {
  const auto skeleton = MakeSkeleton(graph, ranks, least);
  if (!skeleton) {
    return std::nullopt;
  }
  size_t count = 0;
  const auto dimension = Dimensions(*skeleton, count);
  if (!dimension) {
    return std::nullopt;
  }
  Lattice lattice;
  lattice.at.resize(ranks);
  for (size_t d = 0; d < count; ++d) {
    if (!Coordinates(*skeleton, *dimension, static_cast<int>(d), lattice)) {
      return std::nullopt;
    }
  }
  std::set<std::vector<int>> seen(lattice.at.begin(), lattice.at.end());
  return static_cast<int>(seen.size()) == ranks ? std::optional(std::move(lattice)) : std::nullopt;
}

}  // namespace

std::optional<Lattice> RecogniseLattice(const Graph& graph, int ranks) {
  std::map<int64_t, size_t> classes;
  for (const Graph::Arc& arc : graph.arcs) {
    if (++classes[arc.both()]; classes.size() > 64) {
      return std::nullopt;
    }
  }
  size_t tried = 0;
  for (auto it = classes.begin(); it != classes.end() && tried < kMostSkeletons; ++it, ++tried) {
    if (auto lattice = TrySkeleton(graph, ranks, it->first); lattice) {
      return lattice;
    }
  }
  return std::nullopt;
}

}  // namespace sekisho::rankmap
