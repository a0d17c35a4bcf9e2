// SPDX-License-Identifier: Apache-2.0
#include "rankmap/levels.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace sekisho::rankmap {
namespace {

class Partition {
 public:
  explicit Partition(int ranks) : parent_(ranks) { std::iota(parent_.begin(), parent_.end(), 0u); }
  void Join(uint32_t a, uint32_t b) { parent_[Find(a)] = Find(b); }
  std::vector<Vertices> Parts() {
    std::vector<uint32_t> index(parent_.size());  // by root: which part, in the order of the roots
    uint32_t count = 0;
    for (uint32_t v = 0; v < parent_.size(); ++v) {
      if (parent_[v] == v) {
        index[v] = count++;
      }
    }
    std::vector<Vertices> parts(count);
    for (uint32_t v = 0; v < parent_.size(); ++v) {
      parts[index[Find(v)]].push_back(v);
    }
    return parts;
  }

 private:
  uint32_t Find(uint32_t x) {
    while (parent_[x] != x) {
      x = parent_[x] = parent_[parent_[x]];
    }
    return x;
  }
  std::vector<uint32_t> parent_;
};

}  // namespace

std::vector<Level> FindLevels(const Graph& graph, int ranks) {
  std::map<int64_t, std::vector<std::pair<uint32_t, uint32_t>>, std::greater<>> classes;
  for (int u = 0; u < ranks; ++u) {
    for (const Graph::Arc& arc : graph.Of(u)) {
      if (arc.peer > static_cast<uint32_t>(u)) {
        classes[arc.both()].push_back({u, arc.peer});
        if (classes.size() > 64) {
          return {};
        }
      }
    }
  }
  Partition partition(ranks);
  std::vector<Level> levels;
  for (const auto& [weight, edges] : classes) {
    for (const auto& [u, v] : edges) {
      partition.Join(u, v);
    }
    std::vector<Vertices> parts = partition.Parts();
    const size_t size = parts[0].size();
    const bool is_even = std::all_of(parts.begin(), parts.end(),
                                     [&](const Vertices& part) { return part.size() == size; });
    if (is_even && size > 1 && (levels.empty() || static_cast<int>(size) > levels.back().size)) {
      levels.push_back({static_cast<int>(size), weight, std::move(parts)});
    }
  }
  return levels;
}

namespace {

// All distances between the places of a line, or of a ring.
int64_t DistancesOf(int side, bool is_ring) {
  int64_t sum = 0;
  for (int far = 1; far < side; ++far) {
    sum += is_ring ? static_cast<int64_t>(side) * std::min(far, side - far) : int64_t{2} * far * (side - far);
  }
  return sum;
}

}  // namespace

std::vector<int> FindBox(const GridShape& grid, const std::vector<int>& inner, int size) {
  const std::vector<int>& dims = grid.dims;
  std::vector<int> best;
  std::vector<int> box;
  std::pair<int64_t, int> least;  // distances between all its nodes, dimensions not filled
  const std::function<void(int, int64_t, int)> extend = [&](int left, int64_t far, int open) {
    const size_t d = box.size();
    if (d == dims.size()) {
      if (left == 1 && (best.empty() || std::pair(far, open) < least)) {
        best = box;
        least = {far, open};
      }
      return;
    }
    for (int side = dims[d]; side >= inner[d]; --side) {
      if (dims[d] % side == 0 && side % inner[d] == 0 && left % side == 0) {
        const bool is_whole = side == dims[d];
        const int64_t others = size / side;
        box.push_back(side);
        extend(left / side, far + DistancesOf(side, is_whole && grid.wrap[d]) * others * others, open + (is_whole ? 0 : 1));
        box.pop_back();
      }
    }
  };
  extend(size, 0, 0);
  return best;
}

}  // namespace sekisho::rankmap
