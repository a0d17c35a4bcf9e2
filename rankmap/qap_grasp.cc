// SPDX-License-Identifier: Apache-2.0
#include "rankmap/qap_grasp.h"

#include <algorithm>
#include <cmath>

namespace sekisho::rankmap {
namespace {

struct Pair {
  int64_t value;
  int i, j;
};

// The `keep` largest (or smallest) entries off the diagonal.
std::vector<Pair> Extremes(const std::vector<int64_t>& matrix, int n, size_t keep, bool largest) {
  std::vector<Pair> pairs;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      if (i != j) {
        pairs.push_back({largest ? -matrix[i * n + j] : matrix[i * n + j], i, j});
      }
    }
  }
  keep = std::clamp<size_t>(keep, 1, pairs.size());
  std::partial_sort(
      pairs.begin(), pairs.begin() + keep, pairs.end(), [](const Pair& a, const Pair& b) {
        return a.value != b.value ? a.value < b.value : std::pair(a.i, a.j) < std::pair(b.i, b.j);
      });
  pairs.resize(keep);
  return pairs;
}

// Stage 1: the two facilities with heavy flow on two near locations.
void PlaceTwo(const QapInstance& q, Random& random, std::vector<int>& place) {
  const int n = q.size;
  const size_t keep = std::min<size_t>(static_cast<size_t>(kGraspBeta * n * (n - 1)), 2000);
  const std::vector<Pair> flows = Extremes(q.a, n, keep, true);
  const std::vector<Pair> distances = Extremes(q.b, n, keep, false);
  const size_t count = std::min(flows.size(), distances.size());
  std::vector<std::pair<int64_t, size_t>> products;
  for (size_t k = 0; k < count; ++k) {
    products.push_back({-flows[k].value * distances[k].value, k});
  }
  std::sort(products.begin(), products.end());
  const auto choices =
      static_cast<uint32_t>(std::max(1.0, std::ceil(kGraspAlpha * static_cast<double>(count))));
  const size_t k = products[random.Below(choices)].second;
  place[flows[k].i] = distances[k].i;
  place[flows[k].j] = distances[k].j;
}

}  // namespace

std::vector<int> GraspConstruct(const QapInstance& q, Random& random, const Stop& stop) {
  const int n = q.size;
  std::vector<int> place(n, -1);
  if (n == 1) {
    return {0};
  }
  PlaceTwo(q, random, place);
  std::vector<char> taken(n);
  // increase[i * n + k]: cost of facility i on location k against all that is placed.
  std::vector<int64_t> increase(static_cast<size_t>(n) * n);
  const auto account = [&](int j) {
    const int l = place[j];
    taken[l] = 1;
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < n; ++k) {
        increase[i * n + k] += q.a[i * n + j] * q.b[k * n + l] + q.a[j * n + i] * q.b[l * n + k];
      }
    }
  };
  int placed = 0;
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < n; ++k) {
      increase[i * n + k] = q.a[i * n + i] * q.b[k * n + k];
    }
  }
  for (int i = 0; i < n; ++i) {
    if (place[i] >= 0) {
      account(i);
      ++placed;
    }
  }
  std::vector<std::pair<int64_t, int>> candidates;
  for (; placed < n; ++placed) {
    if (stop()) {
      return {};
    }
    candidates.clear();
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < n && place[i] < 0; ++k) {
        if (taken[k] == 0) {
          candidates.push_back({increase[i * n + k], i * n + k});
        }
      }
    }
    const auto choices = static_cast<uint32_t>(
        std::max(1.0, std::ceil(kGraspAlpha * static_cast<double>(candidates.size()))));
    const uint32_t pick = random.Below(choices);
    std::nth_element(candidates.begin(), candidates.begin() + pick, candidates.end());
    const int i = candidates[pick].second / n;
    place[i] = candidates[pick].second % n;
    account(i);
  }
  return place;
}

}  // namespace sekisho::rankmap
