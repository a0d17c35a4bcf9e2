// SPDX-License-Identifier: Apache-2.0
#include "topology/drift.h"

#include <random>

#include <gmock/gmock.h>

#include "topology/sim/families.h"
#include "topology/sim/trial.h"

namespace sekisho::topology {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// In the order of time the next to last comes first, and so on: what counts is `when`.
std::vector<Observation> Backwards(size_t count) {
  std::vector<Observation> observations(count);
  for (size_t i = 0; i < count; ++i) {
    observations[i].when = static_cast<long>(count - i);
  }
  return observations;
}

TEST(Drift, SeesNothingInWhatIsIndependent) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 3);
  for (int run = 0; run < 50; ++run) {
    std::vector<double> residuals(120);
    for (double& residual : residuals) {
      residual = noise(random);
    }
    EXPECT_THAT(Drift(Backwards(residuals.size()), residuals), IsEmpty()) << run;
  }
}

TEST(Drift, IsWhatASlowTimeAddsToAll) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> noise(0, 1);
  std::vector<double> residuals(400);
  for (size_t i = 0; i < residuals.size(); ++i) {
    residuals[i] = noise(random) + (i >= 100 && i < 160 ? 20 : 0);
  }

  const std::vector<double> drift = Drift(Backwards(residuals.size()), residuals);

  ASSERT_THAT(drift, SizeIs(residuals.size()));
  for (size_t i = 0; i < drift.size(); ++i) {
    EXPECT_NEAR(drift[i], i >= 100 && i < 160 ? 20 : 0, 3) << i;
  }
}

TEST(Drift, OfFewObservationsIsNotSaid) {
  std::vector<double> residuals(99, 0);
  std::fill(residuals.begin(), residuals.begin() + 50, 20.0);

  EXPECT_THAT(Drift(Backwards(residuals.size()), residuals), IsEmpty());
}

// As on a processor that others use too: half of all measurements are longer than a switch is away.
TEST(Drift, OfHostsThatAreEmulatedIsNotTakenForTheirNetwork) {
  for (const int most_at_once : {0, 1}) {
    for (uint64_t seed = 60; seed < 64; ++seed) {
      sim::Truth truth = *sim::MakeFamily("single64lab", seed);
      truth.noise.slow_us = 15;
      truth.noise.slow_for = 15;

      const auto trial = sim::RunTrial(truth, "fast", false, seed, 20000, most_at_once);

      EXPECT_GE(trial->score.accuracy, 0.95) << seed << ", at once " << most_at_once;
      EXPECT_THAT(trial->outcome.several_ways, IsEmpty()) << seed << ", at once " << most_at_once;
    }
  }
}

}  // namespace
}  // namespace sekisho::topology
