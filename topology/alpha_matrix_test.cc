// SPDX-License-Identifier: Apache-2.0
#include "topology/alpha_matrix.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>

#include "topology/run.h"
#include "topology/sim/families.h"
#include "topology/sim/network.h"

namespace sekisho::topology {
namespace {

TEST(AlphaMatrix, KnowsEveryPairOfFourSitesFromAThirdOfThem) {
  const sim::Truth truth = *sim::MakeFamily("grid256", 4);
  sim::Network network(truth, 5);
  AlphaMatrix method(truth.host_count, 5, 1);

  const auto totals = RunVirtually(method, [&](const Request& request, double) {
    return absl::StatusOr<Answer>(network.Measure(request));
  });

  ASSERT_TRUE(totals.ok());
  std::vector<double> errors;
  for (int i = 0; i < truth.host_count; ++i) {
    for (int j = 0; j < i; ++j) {
      ASSERT_GE(method.matrix().At(i, j), 0);
      const double rtt = network.PathRtt(i, j);
      errors.push_back(std::abs(method.matrix().At(i, j) - rtt) / rtt);
    }
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LE(errors[errors.size() / 2], 0.01);
  EXPECT_LE(errors[errors.size() * 99 / 100], 0.05);
  EXPECT_LE(method.measured(), static_cast<long>(errors.size()) / 3);
}

TEST(AlphaMatrix, EndsThoughAHostNeverAnswers) {
  sim::Truth truth = *sim::MakeFamily("tiny5", 4);
  truth.is_dead[2] = true;
  sim::Network network(truth, 5);
  AlphaMatrix method(5, 5, 1);

  const auto totals = RunVirtually(method, [&](const Request& request, double) {
    return absl::StatusOr<Answer>(network.Measure(request));
  });

  ASSERT_TRUE(totals.ok());
  EXPECT_LT(method.matrix().At(0, 2), 0);
  EXPECT_GT(method.matrix().At(0, 4), 0);
}

}  // namespace
}  // namespace sekisho::topology
