// SPDX-License-Identifier: Apache-2.0
#include "rankmap/cube.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "rankmap/evaluate.h"

namespace sekisho::rankmap {
namespace {

constexpr uint32_t kUnknown = UINT32_MAX;

// Corners by distance from rank 0: one farther away has every bit of those before it.
std::optional<std::vector<uint32_t>> Corners(const Graph& graph, int ranks, int bits) {
  std::vector<uint32_t> corner(ranks, kUnknown);
  corner[0] = 0;
  std::vector<uint32_t> layer;
  for (int bit = 0; bit < bits; ++bit) {
    layer.push_back(graph.Of(0)[bit].peer);
    corner[layer.back()] = 1u << bit;
  }
  while (!layer.empty()) {
    std::vector<uint32_t> next;
    std::vector<std::pair<uint32_t, uint32_t>> grown;  // rank, a bit more of its corner
    for (const uint32_t u : layer) {
      for (const Graph::Arc& arc : graph.Of(u)) {
        if (corner[arc.peer] == kUnknown) {
          grown.push_back({arc.peer, corner[u]});
        }
      }
    }
    for (const auto& [rank, part] : grown) {
      if (corner[rank] == kUnknown) {
        corner[rank] = 0;
        next.push_back(rank);
      }
      corner[rank] |= part;
    }
    layer = std::move(next);
  }
  std::vector<char> seen(ranks);
  for (const uint32_t c : corner) {
    if (c >= static_cast<uint32_t>(ranks) || seen[c] != 0) {
      return std::nullopt;
    }
    seen[c] = 1;
  }
  return corner;
}

// Where a code stands in the order of Gray codes.
uint32_t GrayPlace(uint32_t code) {
  uint32_t place = code;
  for (uint32_t shift = 1; shift < 32; shift *= 2) {
    place ^= place >> shift;
  }
  return place;
}

// What another bit adds to the mean distance along a dimension of `size` that has `places` by now: least where it closes a ring.
double Growth(int places, int size, bool wraps) {
  const double n = places;
  const double before = (n * n - 1) / (3 * n);
  const double after = wraps && 2 * places == size ? n / 2 : (4 * n * n - 1) / (6 * n);
  return after - before;
}

// By bit, the next heaviest first: the dimension where it goes the shortest way, of such ones one that it fills.  Fewer than `bits` if
// the powers of two in the sides are too few.
std::vector<int> DimensionsOf(int bits, const GridShape& grid) {
  std::vector<int> dimension;
  std::vector<int> places(grid.dims.size(), 1);
  while (static_cast<int>(dimension.size()) < bits) {
    std::pair<double, bool> least;
    int best = -1;
    for (int d = 0; d < static_cast<int>(grid.dims.size()); ++d) {
      const bool is_open = 2 * places[d] < grid.dims[d];
      const std::pair<double, bool> growth(Growth(places[d], grid.dims[d], grid.wrap[d]), is_open);
      if (2 * places[d] <= grid.dims[d] && (best < 0 || growth < least)) {
        best = d;
        least = growth;
      }
    }
    if (best < 0) {
      break;
    }
    places[best] *= 2;
    dimension.push_back(best);
  }
  return dimension;
}

}  // namespace

std::optional<std::vector<uint32_t>> RecogniseCube(const Graph& graph, int ranks) {
  const int bits = std::bit_width(static_cast<unsigned>(ranks)) - 1;
  if (bits < 2 || ranks != 1 << bits) {
    return std::nullopt;
  }
  for (int u = 0; u < ranks; ++u) {
    if (graph.Of(u).size() != static_cast<size_t>(bits)) {
      return std::nullopt;
    }
  }
  auto corner = Corners(graph, ranks, bits);
  if (!corner) {
    return std::nullopt;
  }
  std::vector<double> weights(bits);
  for (int u = 0; u < ranks; ++u) {
    for (const Graph::Arc& arc : graph.Of(u)) {
      const uint32_t differ = (*corner)[u] ^ (*corner)[arc.peer];
      if (!std::has_single_bit(differ)) {
        return std::nullopt;
      }
      weights[std::countr_zero(differ)] += static_cast<double>(arc.both());
    }
  }
  std::vector<int> order(bits);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return weights[a] > weights[b]; });
  for (uint32_t& c : *corner) {
    uint32_t sorted = 0;
    for (int bit = 0; bit < bits; ++bit) {
      sorted |= (c >> order[bit] & 1) << bit;
    }
    c = sorted;
  }
  return corner;
}

std::optional<Placement> PlaceCube(const std::vector<uint32_t>& corners, const Network& network) {
  if (network.kind() != Network::Kind::kGrid) {
    return std::nullopt;
  }
  const std::vector<int>& dims = network.grid().dims;
  const int bits = std::bit_width(corners.size()) - 1;
  const std::vector<int> dimension = DimensionsOf(bits, network.grid());
  if (static_cast<int>(dimension.size()) < bits) {
    return std::nullopt;
  }
  std::vector<int> taken(dims.size());
  for (const int d : dimension) {
    ++taken[d];
  }
  std::vector<int> nodes;
  for (const uint32_t corner : corners) {
    std::vector<uint32_t> code(dims.size());
    std::vector<int> used(dims.size());
    for (int bit = 0; bit < bits; ++bit) {
      const int d = dimension[bit];
      code[d] |= (corner >> bit & 1) << used[d]++;
    }
    int node = 0;
    for (size_t d = dims.size(); d-- > 0;) {
      const bool is_ring = network.grid().wrap[d] && dims[d] == 1 << taken[d];
      node = node * dims[d] + static_cast<int>(is_ring ? GrayPlace(code[d]) : code[d]);
    }
    nodes.push_back(node);
  }
  auto placement = FromNodes(network, static_cast<int>(nodes.size()), nodes);
  return placement.ok() ? std::optional(*std::move(placement)) : std::nullopt;
}

}  // namespace sekisho::rankmap
