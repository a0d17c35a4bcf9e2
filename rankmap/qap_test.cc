// SPDX-License-Identifier: Apache-2.0
// The deltas that tabu search keeps equal full evaluation, and small instances are solved.
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rankmap/bound.h"
#include "rankmap/qap_solver.h"
#include "rankmap/qap_tabu.h"

namespace sekisho::rankmap {
namespace {

enum class Shape { kBoth, kOnlyA, kOnlyB, kNone };

QapInstance RandomInstance(int n, Shape shape, uint64_t seed) {
  Random random(seed);
  QapInstance q;
  q.size = n;
  const auto fill = [&](std::vector<int64_t>& m, bool symmetric) {
    m.resize(n * n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        m[i * n + j] = symmetric && j < i ? m[j * n + i] : random.Below(100);
      }
    }
  };
  fill(q.a, shape == Shape::kBoth || shape == Shape::kOnlyA);
  fill(q.b, shape == Shape::kBoth || shape == Shape::kOnlyB);
  return q;
}

class Deltas : public testing::TestWithParam<Shape> {};

TEST_P(Deltas, EqualFullEvaluation) {
  for (const int n : {2, 3, 7, 12, 17}) {
    const QapInstance q = RandomInstance(n, GetParam(), n);
    QapTabu tabu(q);
    std::vector<int> p(n);
    std::iota(p.begin(), p.end(), 0);
    tabu.Start(p);
    Random random(1);
    for (int round = 0; round < 30; ++round) {
      tabu.Run(7, 2, 5, random);
      ASSERT_EQ(tabu.cost(), q.Cost(tabu.permutation()));
      for (int i = 0; i < n; ++i) {
        for (int j = i + 1; j < n; ++j) {
          std::vector<int> swapped = tabu.permutation();
          std::swap(swapped[i], swapped[j]);
          ASSERT_EQ(tabu.Delta(i, j), static_cast<double>(q.Cost(swapped) - tabu.cost()));
        }
      }
    }
    EXPECT_EQ(tabu.best_cost(), q.Cost(tabu.best()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Deltas,
                         testing::Values(Shape::kBoth, Shape::kOnlyA, Shape::kOnlyB, Shape::kNone));

int64_t Optimum(const QapInstance& q) {
  std::vector<int> p(q.size);
  std::iota(p.begin(), p.end(), 0);
  int64_t best = q.Cost(p);
  while (std::next_permutation(p.begin(), p.end())) {
    best = std::min(best, q.Cost(p));
  }
  return best;
}

TEST(QapSolver, EveryMethodSolvesSmallInstances) {
  for (const QapMethod method :
       {QapMethod::kAuto, QapMethod::kTabu, QapMethod::kIterated, QapMethod::kGrasp}) {
    const QapInstance q = RandomInstance(8, Shape::kNone, 5);
    QapSolver solver(q, method, 1);
    while (solver.moves() < 30000) {
      solver.Step([] { return false; });
    }
    EXPECT_EQ(solver.best_cost(), Optimum(q));
    EXPECT_EQ(q.Cost(solver.best()), solver.best_cost());
  }
}

TEST(QapSolver, ResumesExactly) {
  const QapInstance q = RandomInstance(20, Shape::kBoth, 5);
  const auto run = [](QapSolver& solver, int64_t moves) {
    while (solver.moves() < moves) {
      solver.Step([] { return false; });
    }
  };
  QapSolver unbroken(q, QapMethod::kAuto, 3);
  run(unbroken, 100000);
  QapSolver first(q, QapMethod::kAuto, 3);
  run(first, 31234);
  QapSolver second(q, QapMethod::kAuto, 3);
  ASSERT_TRUE(second.Restore(first.Save()).ok());
  run(second, 100000);

  EXPECT_EQ(second.best(), unbroken.best());
  EXPECT_EQ(second.Save(), unbroken.Save());
  QapSolver other(q, QapMethod::kAuto, 4);
  EXPECT_FALSE(other.Restore(first.Save()).ok());
}

TEST(QapBound, IsBelowTheOptimum) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const QapInstance q = RandomInstance(7, Shape::kNone, seed);
    const int64_t optimum = Optimum(q);
    EXPECT_LE(QapBound(q), optimum);
    EXPECT_GT(QapBound(q), optimum / 2);
  }
}

TEST(QapSolver, OneFacilityIsDone) {
  const QapInstance q{1, {3}, {5}};
  QapSolver solver(q, QapMethod::kAuto, 1);
  solver.Step([] { return false; });
  EXPECT_EQ(solver.best_cost(), 15);
}

}  // namespace
}  // namespace sekisho::rankmap
