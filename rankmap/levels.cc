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

std::vector<int> FindBox(const std::vector<int>& dims, const std::vector<int>& inner, int size) {
  std::vector<int> best;
  std::vector<int> box;
  int best_sum = 0;
  const std::function<void(int)> extend = [&](int left) {
    const size_t d = box.size();
    if (d == dims.size()) {
      const int sum = std::accumulate(box.begin(), box.end(), 0);
      if (left == 1 && (best.empty() || sum < best_sum)) {
        best = box;
        best_sum = sum;
      }
      return;
    }
    for (int side = dims[d]; side >= inner[d]; --side) {
      if (dims[d] % side == 0 && side % inner[d] == 0 && left % side == 0) {
        box.push_back(side);
        extend(left / side);
        box.pop_back();
      }
    }
  };
  extend(size);
  return best;
}

}  // namespace sekisho::rankmap
