// SPDX-License-Identifier: Apache-2.0
#include "topology/neighbour_joining.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace sekisho::topology {
namespace {

void FillUnknown(Matrix& matrix) {
  const Matrix known = matrix;
  for (int i = 0; i < matrix.size; ++i) {
    matrix.Set(i, i, 0);
    for (int j = 0; j < i; ++j) {
      if (known.At(i, j) >= 0) {
        continue;
      }
      double best = std::numeric_limits<double>::max();
      for (int k = 0; k < matrix.size; ++k) {
        if (k != i && k != j && known.At(i, k) >= 0 && known.At(k, j) >= 0) {
          best = std::min(best, std::max({known.At(i, k), known.At(k, j),
                                          (known.At(i, k) + known.At(k, j)) * 0.6}));
        }
      }
      matrix.Set(i, j, best == std::numeric_limits<double>::max() ? 1e6 : best);
    }
  }
}

// The pair of rows that neighbour joining joins next, as indices into `active`.
std::pair<int, int> Closest(const Matrix& matrix, const std::vector<int>& active,
                            const std::vector<double>& sums) {
  const int left = static_cast<int>(active.size());
  std::pair<int, int> best{0, 1};
  double best_value = std::numeric_limits<double>::max();
  for (int i = 0; i < left; ++i) {
    const double* row = &matrix.cells[static_cast<size_t>(active[i]) * matrix.size];
    for (int j = 0; j < i; ++j) {
      const double value = (left - 2) * row[active[j]] - sums[active[i]] - sums[active[j]];
      if (value < best_value) {
        best_value = value;
        best = {j, i};
      }
    }
  }
  return best;
}

}  // namespace

Tree NeighbourJoining(Matrix matrix) {
  const int n = matrix.size;
  Tree tree{.host_count = n, .vertex_count = n, .links = {}};
  if (n < 2) {
    return tree;
  }
  FillUnknown(matrix);
  std::vector<int> active(n);  // rows of the matrix
  std::vector<int> vertex_of(n);
  std::iota(active.begin(), active.end(), 0);
  std::iota(vertex_of.begin(), vertex_of.end(), 0);
  std::vector<double> sums(n, 0);
  for (int i = 0; i < n; ++i) {
    sums[i] = std::accumulate(matrix.cells.begin() + static_cast<size_t>(i) * n,
                              matrix.cells.begin() + static_cast<size_t>(i + 1) * n, 0.0);
  }
  while (active.size() > 2) {
    const auto [first, second] = Closest(matrix, active, sums);
    const int a = active[first];
    const int b = active[second];
    const int vertex = tree.vertex_count++;
    const double both = matrix.At(a, b);
    const double difference = (sums[a] - sums[b]) / (static_cast<double>(active.size()) - 2);
    const double length_a = std::clamp((both + difference) / 2, 0.0, both);
    tree.links.push_back({vertex_of[a], vertex, length_a});
    tree.links.push_back({vertex_of[b], vertex, both - length_a});
    active.erase(active.begin() + second);
    sums[a] = 0;
    for (const int k : active) {
      if (k != a) {
        const double joined = std::max(0.0, (matrix.At(a, k) + matrix.At(b, k) - both) / 2);
        sums[k] += joined - matrix.At(a, k) - matrix.At(b, k);
        sums[a] += joined;
        matrix.Set(a, k, joined);
      }
    }
    vertex_of[a] = vertex;
  }
  tree.links.push_back(
      {vertex_of[active[0]], vertex_of[active[1]], matrix.At(active[0], active[1])});
  return tree;
}

}  // namespace sekisho::topology
