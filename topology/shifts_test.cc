// SPDX-License-Identifier: Apache-2.0
#include "topology/shifts.h"

#include <gmock/gmock.h>

#include "topology/blame.h"

namespace sekisho::topology {
namespace {

using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Every pair of hosts, each off by what its ends are.
std::vector<Excess> PairsOf(const std::vector<double>& shift_us) {
  std::vector<Excess> pairs;
  for (int a = 0; a < static_cast<int>(shift_us.size()); ++a) {
    for (int b = 0; b < a; ++b) {
      pairs.push_back({a, b, shift_us[a] + shift_us[b]});
    }
  }
  return pairs;
}

TEST(Shifts, AreFoundOfEachHost) {
  const std::vector<double> shift_us = {50, 50, 52, 120, 50, 51};

  const Shifts shifts = FitShifts(6, PairsOf(shift_us));

  for (int host = 0; host < 6; ++host) {
    EXPECT_NEAR(shifts.host_us[host], shift_us[host], 2) << host;
  }
  EXPECT_NEAR(shifts.usual_us, 50, 2);
}

TEST(Shifts, AreNotThoseOfAHostThatIsElsewhere) {
  std::vector<Excess> pairs = PairsOf({50, 50, 50, 50, 50, 50});
  for (Excess& pair : pairs) {  // farther from the old neighbours, nearer to others
    pair.us += pair.a != 5 ? 0 : pair.b < 2 ? 400 : -400;
  }

  const Shifts shifts = FitShifts(6, pairs);

  EXPECT_THAT(std::vector(shifts.host_us.begin(), shifts.host_us.begin() + 5),
              Each(DoubleNear(50, 1)));
}

TEST(Shifts, OfNothingMeasuredAreNone) { EXPECT_THAT(FitShifts(2, {}).host_us, ElementsAre(0, 0)); }

TEST(Blame, FallsOnTheHostThatAllContradictionsAreWith) {
  EXPECT_THAT(
      Blame(4, {{0, 1, true, false}, {1, 2, true, true}, {2, 3, true, true}, {3, 0, true, false}}),
      ElementsAre(2));
}

TEST(Blame, FallsOnNobodyForOneOfManyPairs) {
  EXPECT_THAT(Blame(4, {{0, 1, false, true}, {0, 2, true, false}, {1, 3, true, false}}), IsEmpty());
}

}  // namespace
}  // namespace sekisho::topology
