// SPDX-License-Identifier: Apache-2.0
#include "rankmap/bisect.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <queue>

namespace sekisho::rankmap {
namespace {

constexpr int kCoarsest = 48;
constexpr int kTries = 4;
constexpr int kPasses = 6;

struct Candidate {
  int64_t gain;
  uint32_t tie;
  uint32_t vertex;
  uint32_t version;
  bool operator<(const Candidate& other) const {
    return gain != other.gain ? gain < other.gain : tie < other.tie;
  }
};

// One Fiduccia-Mattheyses run over a graph: queues by side, lazily updated.
class Refiner {
 public:
  Refiner(const BisectGraph& graph, int64_t ones, int64_t tolerance, std::vector<uint8_t>& sides,
          Random& random)
      : graph_(graph), ones_(ones), tolerance_(tolerance), sides_(sides), random_(random) {}

  void Run() {
    for (int pass = 0; pass < kPasses && Pass(); ++pass) {
    }
  }

 private:
  int64_t Gain(uint32_t v) const {
    int64_t gain = sides_[v] == 0 ? -graph_.bias[v] : graph_.bias[v];
    for (uint32_t i = graph_.offsets[v]; i < graph_.offsets[v + 1]; ++i) {
      gain += sides_[graph_.peers[i]] != sides_[v] ? graph_.weights[i] : -graph_.weights[i];
    }
    return gain;
  }

  void Push(uint32_t v) {
    queues_[sides_[v]].push(
        {gains_[v], static_cast<uint32_t>(random_.Next() >> 32), v, ++versions_[v]});
  }

  // The best movable vertex of `side`, or -1.
  int64_t Top(int side) {
    auto& queue = queues_[side];
    while (!queue.empty()) {
      const Candidate& top = queue.top();
      if (top.version == versions_[top.vertex] && locked_[top.vertex] == 0) {
        return top.vertex;
      }
      queue.pop();
    }
    return -1;
  }

  void Start() {
    const int n = graph_.size();
    gains_.resize(n);
    versions_.assign(n, 0);
    locked_.assign(n, 0);
    queues_[0] = {};
    queues_[1] = {};
    weight_ = 0;
    for (int v = 0; v < n; ++v) {
      weight_ += sides_[v] != 0 ? graph_.sizes[v] : 0;
      gains_[v] = Gain(v);
      Push(v);
    }
  }

  int64_t Excess(int64_t weight) const {
    return std::max<int64_t>(std::llabs(weight - ones_) - tolerance_, 0);
  }

  // Which vertex moves next: the better gain among the moves that keep or mend the balance.
  int64_t Choose() {
    int64_t best = -1;
    for (int side = 0; side < 2; ++side) {
      const int64_t v = Top(side);
      if (v < 0) {
        continue;
      }
      const int64_t after = weight_ + (side == 0 ? graph_.sizes[v] : -graph_.sizes[v]);
      const int64_t slack = std::max<int64_t>(tolerance_, 1);
      if (std::llabs(after - ones_) > slack &&
          std::llabs(after - ones_) >= std::llabs(weight_ - ones_)) {
        continue;
      }
      if (best < 0 || gains_[v] > gains_[best]) {
        best = v;
      }
    }
    return best;
  }

  void Move(uint32_t v) {
    locked_[v] = 1;
    weight_ += sides_[v] == 0 ? graph_.sizes[v] : -graph_.sizes[v];
    sides_[v] ^= 1;
    for (uint32_t i = graph_.offsets[v]; i < graph_.offsets[v + 1]; ++i) {
      const uint32_t u = graph_.peers[i];
      if (locked_[u] == 0) {
        gains_[u] += sides_[u] == sides_[v] ? -2 * graph_.weights[i] : 2 * graph_.weights[i];
        Push(u);
      }
    }
  }

  bool Pass() {
    Start();
    moves_.clear();
    int64_t gained = 0;
    int64_t best_gain = 0;
    int64_t best_excess = Excess(weight_);
    size_t best_length = 0;
    const size_t patience = 64 + graph_.size() / 16;
    while (moves_.size() - best_length < patience || best_excess > 0) {
      const int64_t v = Choose();
      if (v < 0) {
        break;
      }
      gained += gains_[v];
      Move(static_cast<uint32_t>(v));
      moves_.push_back(static_cast<uint32_t>(v));
      const int64_t excess = Excess(weight_);
      if (excess < best_excess || (excess == best_excess && gained > best_gain)) {
        best_excess = excess;
        best_gain = gained;
        best_length = moves_.size();
      }
    }
    for (size_t i = best_length; i < moves_.size(); ++i) {
      sides_[moves_[i]] ^= 1;
    }
    return best_length > 0;
  }

  const BisectGraph& graph_;
  const int64_t ones_;
  const int64_t tolerance_;
  std::vector<uint8_t>& sides_;
  Random& random_;
  std::vector<int64_t> gains_;
  std::vector<uint32_t> versions_;
  std::vector<char> locked_;
  std::priority_queue<Candidate> queues_[2];
  std::vector<uint32_t> moves_;
  int64_t weight_ = 0;
};

int64_t CostOf(const BisectGraph& graph, const std::vector<uint8_t>& sides) {
  int64_t twice_cut = 0;
  int64_t bias = 0;
  for (int v = 0; v < graph.size(); ++v) {
    bias += sides[v] != 0 ? graph.bias[v] : 0;
    for (uint32_t i = graph.offsets[v]; i < graph.offsets[v + 1]; ++i) {
      twice_cut += sides[graph.peers[i]] != sides[v] ? graph.weights[i] : 0;
    }
  }
  return twice_cut / 2 + bias;
}

// Pairs of vertices joined by heavy arcs become one vertex; coarse[v] is v's.
BisectGraph Coarsen(const BisectGraph& graph, std::vector<uint32_t>& coarse, int32_t largest,
                    Random& random) {
  const int n = graph.size();
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  random.Shuffle(order);
  coarse.assign(n, kNone);
  std::vector<uint32_t> first;
  std::vector<uint32_t> second;
  for (const uint32_t v : order) {
    if (coarse[v] != kNone) {
      continue;
    }
    uint32_t best = kNone;
    int64_t heaviest = 0;
    const uint32_t degree = graph.offsets[v + 1] - graph.offsets[v];
    const uint32_t turn = degree == 0 ? 0 : random.Below(degree);
    for (uint32_t k = 0; k < degree; ++k) {
      const uint32_t i = graph.offsets[v] + (k + turn) % degree;
      const uint32_t u = graph.peers[i];
      if (coarse[u] == kNone && graph.weights[i] > heaviest &&
          graph.sizes[u] + graph.sizes[v] <= largest) {
        heaviest = graph.weights[i];
        best = u;
      }
    }
    coarse[v] = static_cast<uint32_t>(first.size());
    if (best != kNone) {
      coarse[best] = coarse[v];
    }
    first.push_back(v);
    second.push_back(best);
  }

  BisectGraph result;
  result.offsets.push_back(0);
  std::vector<uint32_t> slot(first.size(), kNone);
  for (uint32_t c = 0; c < first.size(); ++c) {
    const uint32_t begin = static_cast<uint32_t>(result.peers.size());
    int64_t bias = 0;
    int32_t size = 0;
    for (const uint32_t v : {first[c], second[c]}) {
      if (v == kNone) {
        continue;
      }
      bias += graph.bias[v];
      size += graph.sizes[v];
      for (uint32_t i = graph.offsets[v]; i < graph.offsets[v + 1]; ++i) {
        const uint32_t u = coarse[graph.peers[i]];
        if (u == c) {
          continue;
        }
        if (slot[u] == kNone) {
          slot[u] = static_cast<uint32_t>(result.peers.size());
          result.peers.push_back(u);
          result.weights.push_back(graph.weights[i]);
        } else {
          result.weights[slot[u]] += graph.weights[i];
        }
      }
    }
    for (uint32_t i = begin; i < result.peers.size(); ++i) {
      slot[result.peers[i]] = kNone;
    }
    result.bias.push_back(bias);
    result.sizes.push_back(size);
    result.offsets.push_back(static_cast<uint32_t>(result.peers.size()));
  }
  return result;
}

// Side 1 grows from a random vertex along the heaviest ties until it is large enough.
std::vector<uint8_t> Grow(const BisectGraph& graph, int64_t ones, Random& random) {
  const int n = graph.size();
  std::vector<uint8_t> sides(n, 0);
  std::vector<int64_t> tie(n);
  for (int v = 0; v < n; ++v) {
    tie[v] = -graph.bias[v];
  }
  int64_t weight = 0;
  uint32_t next = random.Below(n);
  while (weight < ones) {
    sides[next] = 1;
    weight += graph.sizes[next];
    for (uint32_t i = graph.offsets[next]; i < graph.offsets[next + 1]; ++i) {
      tie[graph.peers[i]] += 2 * graph.weights[i];
    }
    int64_t best = std::numeric_limits<int64_t>::min();
    bool found = false;
    const uint32_t turn = random.Below(n);
    for (int k = 0; k < n; ++k) {
      const uint32_t v = (k + turn) % n;
      if (sides[v] == 0 && (!found || tie[v] > best)) {
        best = tie[v];
        next = v;
        found = true;
      }
    }
    if (!found) {
      break;
    }
  }
  return sides;
}

std::vector<uint8_t> BisectLevel(const BisectGraph& graph, int64_t ones, bool is_finest,
                                 Random& random) {
  const int n = graph.size();
  if (n == 0) {
    return {};
  }
  const int32_t largest = *std::max_element(graph.sizes.begin(), graph.sizes.end());
  const int64_t tolerance = is_finest ? 0 : largest;
  std::vector<uint8_t> sides;
  if (n > kCoarsest) {
    const int64_t total = std::accumulate(graph.sizes.begin(), graph.sizes.end(), int64_t{0});
    const int32_t limit = static_cast<int32_t>(std::max<int64_t>(2 * total / kCoarsest, 2));
    std::vector<uint32_t> coarse;
    const BisectGraph smaller = Coarsen(graph, coarse, limit, random);
    if (smaller.size() * 20 < n * 19) {
      const std::vector<uint8_t> found = BisectLevel(smaller, ones, false, random);
      sides.resize(n);
      for (int v = 0; v < n; ++v) {
        sides[v] = found[coarse[v]];
      }
      RefineSides(graph, ones, tolerance, sides, random);
      return sides;
    }
  }
  int64_t best_excess = 0;
  int64_t best_cost = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    std::vector<uint8_t> tried = Grow(graph, ones, random);
    RefineSides(graph, ones, tolerance, tried, random);
    int64_t weight = 0;
    for (int v = 0; v < n; ++v) {
      weight += tried[v] != 0 ? graph.sizes[v] : 0;
    }
    const int64_t excess = std::max<int64_t>(std::llabs(weight - ones) - tolerance, 0);
    const int64_t cost = CostOf(graph, tried);
    if (sides.empty() || excess < best_excess || (excess == best_excess && cost < best_cost)) {
      sides = std::move(tried);
      best_excess = excess;
      best_cost = cost;
    }
  }
  return sides;
}

}  // namespace

void RefineSides(const BisectGraph& graph, int64_t ones, int64_t tolerance,
                 std::vector<uint8_t>& sides, Random& random) {
  Refiner(graph, ones, tolerance, sides, random).Run();
}

std::vector<uint8_t> Bisect(const BisectGraph& graph, int64_t ones, Random& random) {
  return BisectLevel(graph, ones, true, random);
}

}  // namespace sekisho::rankmap
