// SPDX-License-Identifier: Apache-2.0
// Searches repeat bit by bit, resume exactly, and always hand back a placement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rankmap/construct.h"
#include "rankmap/generate.h"
#include "rankmap/near.h"
#include "rankmap/network_format.h"
#include "rankmap/portfolio.h"

namespace sekisho::rankmap {
namespace {

constexpr int64_t kMoves = 150000;

struct Setting {
  Network network = *ParseNetworkSpec("torus:4x4x4");
  Pattern pattern = *Generate("random", {.ranks = 60, .degree = 3, .seed = 4});
  SolveOptions options;
};

// Runs to `moves`, of a budget of kMoves; returns the checkpoint.
std::string RunFor(Portfolio& portfolio, int64_t moves) {
  int64_t done = 0;
  Limits limits;
  limits.moves = kMoves;
  portfolio.Run(
      limits, [] { return 0.0; }, [&] { return done >= moves; },
      [&](const Standing& standing) { done = standing.moves; });
  return portfolio.Save();
}

class EveryObjective : public testing::TestWithParam<Objective> {};

TEST_P(EveryObjective, AnInterruptedRunEndsAsAnUnbrokenOne) {
  Setting setting;
  setting.options.objective = GetParam();
  const Problem problem(setting.pattern, setting.network, setting.options);
  Portfolio unbroken(problem, 1, nullptr);
  RunFor(unbroken, kMoves);

  for (const int64_t at : {1000, 40000, 80000, 140000}) {
    Portfolio first(problem, 1, nullptr);
    const std::string checkpoint = RunFor(first, at);
    Portfolio second(problem, 1, nullptr);
    ASSERT_TRUE(second.Restore(checkpoint).ok());
    EXPECT_LE(second.best_value(), first.best_value());
    RunFor(second, kMoves);
    EXPECT_EQ(second.best(), unbroken.best()) << "stopped at " << at;
  }
}

TEST_P(EveryObjective, FindsBetterThanTheNaturalOrder) {
  Setting setting;
  setting.options.objective = GetParam();
  const Problem problem(setting.pattern, setting.network, setting.options);
  Portfolio portfolio(problem, 1, nullptr);
  const double natural = portfolio.best_value();

  RunFor(portfolio, kMoves);

  EXPECT_LT(portfolio.best_value(), 0.8 * natural);
  EXPECT_GE(portfolio.best_value(), problem.bound);
  EXPECT_EQ(portfolio.best_value(), problem.Value(portfolio.best()));
}

INSTANTIATE_TEST_SUITE_P(All, EveryObjective,
                         testing::Values(Objective::kQap, Objective::kHopBytes, Objective::kMaxLink,
                                         Objective::kRmatt, Objective::kSteps),
                         [](const auto& info) { return std::string(NameOf(info.param)); });

class EveryMethod : public testing::TestWithParam<Method> {};

TEST_P(EveryMethod, ImprovesOnTrees) {
  Setting setting;
  setting.network = *ParseNetworkSpec("tree:4,4:1,4:1:2");
  setting.options.method = GetParam();
  setting.options.objective = Objective::kRmatt;
  const Problem problem(setting.pattern, setting.network, setting.options);
  Portfolio portfolio(problem, 2, nullptr);
  const double natural = portfolio.best_value();

  RunFor(portfolio, kMoves);

  EXPECT_LT(portfolio.best_value(), natural);
}

INSTANTIATE_TEST_SUITE_P(All, EveryMethod,
                         testing::Values(Method::kAuto, Method::kBisem, Method::kOptim,
                                         Method::kAnneal));

TEST(Checkpoint, DamageAndOtherProblemsAreRefused) {
  Setting setting;
  const Problem problem(setting.pattern, setting.network, setting.options);
  Portfolio portfolio(problem, 1, nullptr);
  const std::string checkpoint = RunFor(portfolio, 1000);
  setting.options.seed = 99;
  const Problem other(setting.pattern, setting.network, setting.options);

  EXPECT_FALSE(Portfolio(other, 1, nullptr).Restore(checkpoint).ok());
  for (size_t cut = 0; cut < checkpoint.size(); cut += 97) {
    EXPECT_FALSE(Portfolio(problem, 1, nullptr).Restore(checkpoint.substr(0, cut)).ok());
  }
  std::string flipped = checkpoint;
  flipped[flipped.size() / 2] ^= 1;
  EXPECT_FALSE(Portfolio(problem, 1, nullptr).Restore(flipped).ok());
}

TEST(Solver, TheFirstBisectionCutsAsOftenAsTold) {
  Setting setting;
  const Stop never = [] { return false; };
  const auto value = [&](int max_itrs) {
    setting.options.max_itrs = max_itrs;
    const Problem problem(setting.pattern, setting.network, setting.options);
    Random random(7);
    bool was_stopped = false;
    int64_t moves = 0;
    return problem.Value(*FixedConstruction(kBisectConstruction, problem, random, never, was_stopped, moves));
  };

  EXPECT_GT(value(1), 1.2 * value(-1));
}

// A ring closes round the torus whatever digit it is laid on.
TEST(Solver, FourDimensionsFoldOntoThree) {
  const Network network = *ParseNetworkSpec("torus:16x16x16");
  const Pattern pattern = *Generate("stencil", {.grid = {8, 8, 8, 8}, .permute = 3});
  const Problem problem(pattern, network, {});
  const Stop never = [] { return false; };
  Random random(7);
  bool was_stopped = false;
  int64_t moves = 0;

  const auto placement = FixedConstruction(kFoldConstruction, problem, random, never, was_stopped, moves);

  ASSERT_TRUE(placement);
  EXPECT_LE(Evaluate(pattern, network, *placement).avg_hops, 1.75);
}

TEST(Solver, WhereNodesTakeSeveralARankOftenGoesBesideItsPartner) {
  const Network network = *ParseNetwork("torus 4x4\ncapacity 3\n", "f");
  const NearNodes near(network);
  Random random(5);
  std::vector<int> seen(network.slots());
  constexpr int kDraws = 3000;

  for (int i = 0; i < kDraws; ++i) {
    ++seen[near.Draw(7, random)];
  }

  EXPECT_EQ(seen[7], 0);  // its own
  EXPECT_GT(seen[6], kDraws / 8);
  EXPECT_GT(seen[8], kDraws / 8);
  EXPECT_LT(seen[6] + seen[8], kDraws * 5 / 8);
}

// A matrix may say that nodes differ in their distances to themselves, and ranks may send to themselves.
TEST(Solver, WhatRanksSendToThemselvesCountsWhereTheyAre) {
  constexpr uint32_t kRanks = 40;
  Random random(3);
  // Where they begin that costs nothing, and nowhere else.
  std::string matrix = "matrix 40\n";
  std::vector<Message> messages;
  for (uint32_t i = 0; i < kRanks; ++i) {
    messages.push_back({i, i, i % 2 == 0 ? 50 : 0, 0, 1});
    for (uint32_t j = 0; j < kRanks; ++j) {
      matrix += std::to_string(i == j ? i % 2 * 900 : 1 + (i > j ? i - j : j - i)) + (j + 1 < kRanks ? " " : "\n");
      if (i != j) {
        messages.push_back({i, j, static_cast<int64_t>(1 + random.Below(9)), 0, 1});
      }
    }
  }
  const Network network = *ParseNetwork(matrix, "f");
  const Pattern pattern = *Pattern::Create(kRanks, messages);
  SolveOptions options;
  options.objective = Objective::kHopBytes;
  const Problem problem(pattern, network, options);
  Portfolio portfolio(problem, 1, nullptr);

  RunFor(portfolio, kMoves);

  EXPECT_EQ(portfolio.best_value(), problem.Value(portfolio.best()));
}

TEST(Solver, OneRankOrNoTrafficNeedsNoSearch) {
  const Network network = *ParseNetworkSpec("torus:2x2");
  const Pattern pattern = *Pattern::Create(1, {});
  const Problem problem(pattern, network, {});
  Portfolio portfolio(problem, 1, nullptr);

  RunFor(portfolio, 1000);

  EXPECT_EQ(portfolio.best_value(), 0);
}

}  // namespace
}  // namespace sekisho::rankmap
