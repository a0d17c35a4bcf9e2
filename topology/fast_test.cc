// SPDX-License-Identifier: Apache-2.0
#include "topology/fast.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "topology/run.h"
#include "topology/sim/families.h"
#include "topology/sim/network.h"
#include "topology/sim/score.h"

namespace sekisho::topology {
namespace {

struct Trial {
  sim::Truth truth;
  Outcome outcome;
  RunTotals totals;
  sim::Score score;
  double between_share = 0;  // of the pairs between sites
  int most_local = 0;        // measurements of a host at once
  int most_wide = 0;
};

int MostAtOnce(std::vector<std::pair<double, int>> events) {
  std::sort(events.begin(), events.end());
  int now = 0;
  int most = 0;
  for (const auto& [time, change] : events) {
    now += change;
    most = std::max(most, now);
  }
  return most;
}

Trial Solve(sim::Truth truth, uint64_t seed, bool has_hints = false) {
  Trial trial{.truth = std::move(truth)};
  sim::Network network(trial.truth, seed + 500);
  const int n = trial.truth.host_count;
  FastMethod method(
      n, {.site_hints = has_hints ? trial.truth.cluster_of : std::vector<int>{}, .seed = seed});
  std::set<std::pair<int, int>> between;
  std::vector<std::vector<std::pair<double, int>>> local(n);
  std::vector<std::vector<std::pair<double, int>>> wide(n);
  const auto totals = RunVirtually(method, [&](const Request& request, double start) {
    const Answer answer = network.Measure(request);
    const bool is_wide = trial.truth.cluster_of[request.from] != trial.truth.cluster_of[request.to];
    if (is_wide) {
      between.insert(std::minmax(request.from, request.to));
    }
    for (const int host : {request.from, request.to}) {
      auto& events = (is_wide ? wide : local)[host];
      events.emplace_back(start, 1);
      events.emplace_back(start + answer.duration_us, -1);
    }
    return absl::StatusOr<Answer>(answer);
  });
  trial.totals = *totals;
  trial.outcome = method.Finish();
  trial.score = sim::Judge(trial.truth, trial.outcome.tree, 20000);
  double pairs = 0;
  for (int i = 0; i < n; ++i) {
    trial.most_local = std::max(trial.most_local, MostAtOnce(local[i]));
    trial.most_wide = std::max(trial.most_wide, MostAtOnce(wide[i]));
    for (int j = 0; j < i; ++j) {
      pairs += trial.truth.cluster_of[i] != trial.truth.cluster_of[j] ? 1 : 0;
    }
  }
  trial.between_share = pairs > 0 ? static_cast<double>(between.size()) / pairs : 0;
  return trial;
}

Trial Solve(std::string_view family, uint64_t seed, bool has_hints = false) {
  return Solve(*sim::MakeFamily(family, seed), seed, has_hints);
}

TEST(FastMethod, FindsTheExactTreeWhereThereIsNoNoise) {
  const Trial trial = Solve("exact64", 11);

  EXPECT_EQ(trial.score.robinson_foulds, 0);
  EXPECT_EQ(trial.score.accuracy, 1);
}

TEST(FastMethod, SolvesOneSiteOf64HostsInAFifthOfASecond) {
  for (const uint64_t seed : {21, 22, 23}) {
    const Trial trial = Solve("single64", seed);

    EXPECT_GE(trial.score.accuracy, 0.99);
    EXPECT_LE(trial.totals.makespan_us, 0.2e6);
    EXPECT_EQ(trial.most_local, 1);
  }
}

TEST(FastMethod, SolvesOneSiteOf64HostsWithTheLabsNoise) {
  const Trial trial = Solve("single64lab", 24);

  EXPECT_GE(trial.score.accuracy, 0.99);
}

TEST(FastMethod, FindsFourSitesWithFewMeasurementsBetweenThem) {
  const Trial trial = Solve("grid256", 31);

  EXPECT_GE(trial.score.accuracy, 0.97);
  EXPECT_GE(trial.score.accuracy_same_cluster, 0.98);
  EXPECT_LE(trial.totals.makespan_us, 2e6);
  EXPECT_LE(trial.between_share, 0.012);
  EXPECT_LE(trial.totals.pings, 350 * 256);
  EXPECT_EQ(trial.most_local, 1);
  EXPECT_LE(trial.most_wide, 4);
}

TEST(FastMethod, NeedsFewerMeasurementsBetweenSitesThatItIsTold) {
  const Trial trial = Solve("grid256", 32, true);

  EXPECT_GE(trial.score.accuracy, 0.97);
  EXPECT_LE(trial.totals.makespan_us, 1.3e6);
  EXPECT_LE(trial.between_share, 0.004);
}

TEST(FastMethod, InventsAtMostAPairInAStar) {
  const Trial trial = Solve("star48", 41);

  EXPECT_LE(trial.score.robinson_foulds, 1);
  EXPECT_GE(trial.score.accuracy, 0.99);
}

TEST(FastMethod, PlacesTwoThreeAndFiveHosts) {
  for (const std::string_view family : {"tiny2", "tiny3", "tiny5"}) {
    const Trial trial = Solve(family, 42);

    EXPECT_EQ(trial.score.hosts_lost, 0) << family;
    EXPECT_EQ(trial.score.robinson_foulds, 0) << family;
  }
}

TEST(FastMethod, NamesHostsThatNeverAnswerAndPlacesTheRest) {
  sim::Truth truth = *sim::MakeFamily("single64", 51);
  truth.is_dead[3] = truth.is_dead[60] = true;

  const Trial trial = Solve(std::move(truth), 51);

  EXPECT_EQ(trial.score.hosts_lost, 0);
  EXPECT_GE(trial.score.accuracy, 0.99);
  std::vector<int> excluded;
  for (const Excluded& one : trial.outcome.excluded) {
    excluded.push_back(one.host);
  }
  EXPECT_THAT(excluded, ::testing::ElementsAre(3, 60));
}

TEST(FastMethod, EndsWithoutATreeWhereNobodyAnswers) {
  sim::Truth truth = *sim::MakeFamily("tiny5", 1);
  truth.is_dead.assign(5, true);

  const Trial trial = Solve(std::move(truth), 1);

  EXPECT_TRUE(trial.outcome.tree.links.empty());
  EXPECT_EQ(trial.outcome.excluded.size(), 5u);
}

TEST(FastMethod, HasNothingToDoForOneHost) {
  FastMethod method(1, {});

  EXPECT_THAT(method.Next(), ::testing::IsEmpty());
  EXPECT_TRUE(method.Finish().excluded.empty());
}

TEST(FastMethod, EndsWhereAllRoundTripsAreEqual) {
  FastMethod method(6, {});
  const auto totals = RunVirtually(method, [](const Request& request, double) {
    return absl::StatusOr<Answer>(Answer{.is_ok = true,
                                         .min_us = 100,
                                         .low_us = 100,
                                         .high_us = 100,
                                         .pings = request.most,
                                         .duration_us = 500});
  });

  ASSERT_TRUE(totals.ok());
  EXPECT_EQ(method.Finish().tree.links.size(), 6u);
}

}  // namespace
}  // namespace sekisho::topology
