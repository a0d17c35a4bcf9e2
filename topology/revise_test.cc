// SPDX-License-Identifier: Apache-2.0
#include "topology/revise.h"

#include <gmock/gmock.h>

#include "topology/run.h"
#include "topology/sim/families.h"
#include "topology/sim/network.h"
#include "topology/sim/score.h"

namespace sekisho::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

struct Revised {
  Tree tree;
  Revision revision;
  RunTotals totals;
};

Revised Revise(const sim::Truth& truth, Tree known, uint64_t seed, std::vector<bool> is_here = {}) {
  is_here.resize(truth.host_count, true);
  sim::Network network(truth, seed);
  ReviseMethod method({std::move(known), std::move(is_here)}, seed);
  const auto totals = RunVirtually(method, [&](const Request& request, double) {
    return absl::StatusOr<Answer>(network.Measure(request));
  });
  Tree tree = method.Finish().tree;
  return {std::move(tree), method.revision(), *totals};
}

Tree Inferred(const sim::Truth& truth, uint64_t seed) {
  return Revise(truth,
                {.host_count = truth.host_count, .vertex_count = truth.host_count, .links = {}},
                seed)
      .tree;
}

std::vector<bool> Only(int hosts, const std::vector<int>& which) {
  std::vector<bool> is(hosts, false);
  for (const int host : which) {
    is[host] = true;
  }
  return is;
}

// The host's link now ends where another's does.
void Move(sim::Truth& truth, int host, int beside) {
  int there = -1;
  for (const sim::TruthLink& link : truth.links) {
    there = link.u == beside ? link.v : link.v == beside ? link.u : there;
  }
  for (sim::TruthLink& link : truth.links) {
    (link.u == host ? link.v : link.v == host ? link.u : there) = there;
  }
}

double Accuracy(const sim::Truth& truth, const Tree& tree) {
  return sim::Judge(truth, tree, 20000).accuracy;
}

TEST(ReviseMethod, InfersWhereNothingIsKnown) {
  const sim::Truth truth = *sim::MakeFamily("single64", 71);

  EXPECT_GE(Accuracy(truth, Inferred(truth, 1)), 0.99);
}

TEST(ReviseMethod, LeavesATrueTreeAloneForFewMeasurements) {
  for (const char* family : {"single64", "single64lab", "star48", "grid256", "flat1024"}) {
    const sim::Truth truth = *sim::MakeFamily(family, 72);
    Tree tree = Inferred(truth, 1);

    for (uint64_t round = 2; round < 8; ++round) {
      const Revised revised = Revise(truth, tree, round);

      EXPECT_FALSE(revised.revision.is_anew) << family;
      EXPECT_THAT(revised.revision.moved, IsEmpty()) << family;
      EXPECT_THAT(revised.revision.placed, IsEmpty()) << family;
      EXPECT_LE(revised.totals.measurements, 4 * truth.host_count) << family;
      tree = revised.tree;
    }
  }
}

// Sessions of real probers, seen where the lab is ten times as slow: all is 0.15 to 0.2 ms longer
// than it should be, each time by another amount, and by one more for each host.
sim::Truth TwoSitesOfFourSwitches() {
  sim::Truth truth{.family = "dilated", .host_count = 16, .vertex_count = 22, .links = {}};
  for (int host = 0; host < 16; ++host) {
    const double us = 800.0 + 10 * (host % 4);
    truth.links.push_back({host, 16 + host / 4, us, us});
    truth.cluster_of.push_back(host / 8);
  }
  for (int at = 16; at < 20; ++at) {
    truth.links.push_back({at, at < 18 ? 20 : 21, 200, 200});
  }
  truth.links.push_back({20, 21, 5000, 5000});
  truth.is_busy.assign(16, false);
  truth.is_dead.assign(16, false);
  truth.noise = sim::LabNoise();
  truth.noise.pair_us = 15;
  truth.noise.session_us = 60;
  truth.noise.host_us = 20;
  return truth;
}

TEST(ReviseMethod, MovesNoHostThatOnlyAnswersLaterThanInAnotherSession) {
  const sim::Truth truth = TwoSitesOfFourSwitches();
  for (uint64_t seed = 1; seed < 40; ++seed) {
    const Tree tree = Inferred(truth, seed);

    const Revised revised = Revise(truth, tree, seed + 100);

    EXPECT_FALSE(revised.revision.is_anew) << seed;
    EXPECT_THAT(revised.revision.moved, IsEmpty()) << seed;
    EXPECT_EQ(Accuracy(truth, revised.tree), 1) << seed;
  }
}

TEST(ReviseMethod, PlacesANewcomerAndFindsAMoveAmongHostsThatAnswerLater) {
  sim::Truth truth = TwoSitesOfFourSwitches();
  for (uint64_t seed = 1; seed < 40; ++seed) {
    const Tree known = Inferred(truth, seed);

    const Revised joined = Revise(truth, Without(known, Only(16, {15})), seed + 100);

    EXPECT_THAT(joined.revision.placed, ElementsAre(15)) << seed;
    EXPECT_THAT(joined.revision.moved, IsEmpty()) << seed;
    EXPECT_EQ(Accuracy(truth, joined.tree), 1) << seed;

    sim::Truth after = truth;
    Move(after, 3, 4);

    const Revised revised = Revise(after, joined.tree, seed + 200);

    EXPECT_FALSE(revised.revision.is_anew) << seed;
    EXPECT_THAT(revised.revision.moved, ElementsAre(3)) << seed;
    EXPECT_EQ(Accuracy(after, revised.tree), 1) << seed;
  }
}

TEST(ReviseMethod, SpoilsNoTreeOfBusyHosts) {
  const sim::Truth truth = *sim::MakeFamily("grid256busy", 72);
  Tree tree = Inferred(truth, 1);
  const double before = Accuracy(truth, tree);

  for (uint64_t round = 2; round < 12; ++round) {
    Revised revised = Revise(truth, tree, round);
    EXPECT_FALSE(revised.revision.is_anew);
    tree = std::move(revised.tree);
  }

  EXPECT_GE(Accuracy(truth, tree), before - 0.005);
}

TEST(ReviseMethod, PlacesHostsThatJoinInTwoStepsEach) {
  for (const char* family : {"single64", "single64lab", "deep128", "grid256"}) {
    const sim::Truth truth = *sim::MakeFamily(family, 73);
    const std::vector<int> newcomers = {3, 17, 40, 63};
    Tree tree = Without(Inferred(truth, 1), Only(truth.host_count, newcomers));

    const Revised revised = Revise(truth, tree, 2);

    EXPECT_FALSE(revised.revision.is_anew) << family;
    EXPECT_THAT(revised.revision.placed, UnorderedElementsAre(3, 17, 40, 63)) << family;
    EXPECT_GE(Accuracy(truth, revised.tree), 0.97) << family;
    EXPECT_LE(revised.totals.measurements, 4 * truth.host_count + 4 * 36) << family;
  }
}

TEST(ReviseMethod, FindsAHostThatWasPluggedInElsewhere) {
  for (const char* family : {"single64", "single64lab", "deep128"}) {
    sim::Truth truth = *sim::MakeFamily(family, 74);
    const Tree tree = Inferred(truth, 1);
    const Rooted before = HangUp(TreeOf(truth), 5);
    int far = 6;  // the farthest from it
    for (int host = 0; host < truth.host_count; ++host) {
      far = before.Hops(5, host) > before.Hops(5, far) ? host : far;
    }
    Move(truth, 5, far);

    const Revised revised = Revise(truth, tree, 2);

    EXPECT_FALSE(revised.revision.is_anew) << family;
    EXPECT_THAT(revised.revision.moved, ElementsAre(5)) << family;
    EXPECT_GE(Accuracy(truth, revised.tree), 0.98) << family;
  }
}

TEST(ReviseMethod, InfersAnewWhereTheNetworkIsAnother) {
  const sim::Truth before = *sim::MakeFamily("single64", 75);
  const sim::Truth truth = *sim::MakeFamily("single64", 76);

  const Revised revised = Revise(truth, Inferred(before, 1), 2);

  EXPECT_TRUE(revised.revision.is_anew);
  EXPECT_GE(Accuracy(truth, revised.tree), 0.99);
}

TEST(ReviseMethod, InfersAnewWhereALinkBetweenSwitchesIsLonger) {
  sim::Truth truth = *sim::MakeFamily("single64", 77);
  const Tree tree = Inferred(truth, 1);
  for (sim::TruthLink& link : truth.links) {
    if (link.u >= truth.host_count && link.v >= truth.host_count) {
      link.uv_us += 40;
      link.vu_us += 40;
      break;
    }
  }

  const Revised revised = Revise(truth, tree, 2);

  EXPECT_TRUE(revised.revision.is_anew);
  EXPECT_GE(Accuracy(truth, revised.tree), 0.99);
}

TEST(ReviseMethod, KeepsThePlacesOfHostsThatAreAway) {
  const sim::Truth truth = *sim::MakeFamily("single64", 78);
  const Tree tree = Inferred(truth, 1);
  std::vector<bool> is_here(64, true);
  is_here[8] = is_here[9] = false;

  const Revised revised = Revise(truth, tree, 2, is_here);

  EXPECT_EQ(sim::Judge(truth, revised.tree).hosts_lost, 0);
}

TEST(ReviseMethod, EndsWhereEverybodyIsLost) {
  const sim::Truth truth = *sim::MakeFamily("single64", 79);
  const Tree tree = Inferred(truth, 1);
  ReviseMethod method({tree, std::vector<bool>(64, true)}, 1);
  long asked = 0;

  const auto totals = RunVirtually(method, [&](const Request&, double) {
    ++asked;
    return absl::StatusOr<Answer>(Answer{.duration_us = 900'000});
  });

  EXPECT_TRUE(totals.ok());
  EXPECT_LT(asked, 64 * 8);
  EXPECT_EQ(method.Finish().tree.links.size(), tree.links.size());
}

}  // namespace
}  // namespace sekisho::topology
