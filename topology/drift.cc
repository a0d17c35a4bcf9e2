// SPDX-License-Identifier: Apache-2.0
#include "topology/drift.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "topology/median.h"

namespace sekisho::topology {
namespace {

constexpr size_t kLeast = 100;          // observations: of fewer, chance alone would show as much
constexpr double kLeastLikeness = 0.3;  // of one residual to the next, as a correlation
constexpr long kNeighbours = 7;         // on either side

// Correlation of each with the next; those far off count as no farther than three usual deviations.
double Likeness(std::vector<double> values) {
  const double middle = Median(values);
  std::vector<double> sizes;
  for (double& value : values) {
    value -= middle;
    sizes.push_back(std::abs(value));
  }
  const double most = 3 * 1.48 * Median(sizes);
  double with_next = 0;
  double with_itself = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::clamp(values[i], -most, most);
    with_itself += values[i] * values[i];
    with_next += i > 0 ? values[i] * values[i - 1] : 0;
  }
  return with_itself > 0 ? with_next / with_itself : 0;
}

// From one to the next.
double UsualStep(const std::vector<double>& values) {
  std::vector<double> steps;
  for (size_t i = 1; i < values.size(); ++i) {
    steps.push_back(std::abs(values[i] - values[i - 1]));
  }
  return Median(steps);
}

// What its neighbours are; where those before and those after differ, it belongs to the ones that it is nearer to.
// Not what it is itself: that is the network's.
double At(const std::vector<double>& values, long place, double step) {
  const auto begin = values.begin() + std::max(0L, place - kNeighbours);
  const auto middle = values.begin() + place;
  const auto end = values.begin() + std::min(static_cast<long>(values.size()), place + 1 + kNeighbours);
  std::vector<double> near(begin, middle);
  std::vector<double> later(middle + 1, end);
  if (!near.empty() && !later.empty()) {
    const double before = Median(near);
    const double after = Median(later);
    if (std::abs(before - after) > 2 * step) {
      return std::abs(before - *middle) < std::abs(after - *middle) ? before : after;
    }
  }
  near.insert(near.end(), later.begin(), later.end());
  return Median(near);
}

}  // namespace

std::vector<double> Drift(const std::vector<Observation>& observations, const std::vector<double>& residuals) {
  if (observations.size() < kLeast || residuals.size() != observations.size()) {
    return {};
  }
  std::vector<size_t> order(observations.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t i, size_t j) { return observations[i].when < observations[j].when; });
  std::vector<double> in_time;
  for (const size_t i : order) {
    in_time.push_back(residuals[i]);
  }
  if (Likeness(in_time) < kLeastLikeness) {
    return {};
  }
  const double usual = Median(in_time);
  const double step = UsualStep(in_time);
  std::vector<double> drift(in_time.size());
  for (size_t k = 0; k < in_time.size(); ++k) {
    drift[order[k]] = At(in_time, static_cast<long>(k), step) - usual;
  }
  return drift;
}

}  // namespace sekisho::topology
