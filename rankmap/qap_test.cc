// SPDX-License-Identifier: Apache-2.0
// The deltas that tabu search keeps equal full evaluation, and small instances are solved.
#include <cstring>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rankmap/archive.h"
#include "rankmap/bound.h"
#include "rankmap/qap_portfolio.h"
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

constexpr QapMethod kMethods[] = {QapMethod::kAuto, QapMethod::kGrasp, QapMethod::kTabu, QapMethod::kIterated};
const Stop kNever = [] { return false; };

// Whole steps, as a run between two looks at its limits.
void RunTo(QapSolver& solver, int64_t moves) {
  while (solver.moves() < moves) {
    solver.Step(kNever);
  }
}

TEST(QapSolver, ResumesExactlyFromTheMiddleOfARound) {
  const QapInstance q = RandomInstance(60, Shape::kBoth, 5);
  for (const QapMethod method : kMethods) {
    QapSolver unbroken(q, method, 3);
    RunTo(unbroken, 20000);
    for (int steps : {1, 2, 3, 4, 5, 6}) {
      QapSolver first(q, method, 3);
      while (steps-- > 0 && first.moves() < 20000) {
        first.Step(kNever);
      }
      QapSolver second(q, method, 3);
      ASSERT_TRUE(second.Restore(first.Save()).ok());
      EXPECT_EQ(second.best_cost(), first.best_cost()) << "the best of the round under way is lost";
      EXPECT_EQ(second.moves(), first.moves());
      RunTo(second, 20000);
      EXPECT_EQ(second.best(), unbroken.best());
      EXPECT_EQ(second.Save(), unbroken.Save());
    }
  }
}

TEST(QapSolver, ACheckpointOfAnotherSearchIsRefused) {
  const QapInstance q = RandomInstance(20, Shape::kBoth, 5);
  const std::string saved = QapSolver(q, QapMethod::kAuto, 3).Save();

  EXPECT_FALSE(QapSolver(q, QapMethod::kAuto, 4).Restore(saved).ok());
  EXPECT_FALSE(QapSolver(q, QapMethod::kTabu, 3).Restore(saved).ok());
  EXPECT_FALSE(QapSolver(q, QapMethod::kAuto, 3).Restore(saved.substr(0, saved.size() - 1)).ok());
}

TEST(QapSolver, AConstructionThatIsStoppedHasNotHappened) {
  const QapInstance q = RandomInstance(30, Shape::kBoth, 5);
  QapSolver solver(q, QapMethod::kGrasp, 3);
  const std::string before = solver.Save();
  int asked = 0;
  solver.Step([&] { return ++asked > 10; });

  EXPECT_EQ(asked, 11);
  EXPECT_EQ(solver.Save(), before);
}

Limits Moves(int64_t moves) {
  Limits limits;
  limits.moves = moves;
  return limits;
}

TEST(QapPortfolio, EachThreadGoesOnFromTheBestOfAll) {
  constexpr int64_t kMoves = 6000;
  const QapInstance q = RandomInstance(40, Shape::kBoth, 9);
  QapSolver long_one(q, QapMethod::kAuto, 2);
  RunTo(long_one, 200000);
  const int64_t found = long_one.best_cost();
  for (const QapMethod method : {QapMethod::kAuto, QapMethod::kIterated}) {
    QapSolver alone(q, method, 1);
    RunTo(alone, kMoves);
    ASSERT_GT(alone.best_cost(), found) << "too easy an instance to tell";
    QapPortfolio portfolio(q, method, 1, 2);
    ArchiveWriter begun;  // two threads that have done nothing yet, one find
    uint64_t magic = 0;
    std::memcpy(&magic, portfolio.Save().data(), sizeof(magic));
    begun.Put(magic);
    begun.Put<uint64_t>(2);
    begun.PutList(std::vector<char>());
    begun.PutList(std::vector<char>());
    begun.PutList(long_one.best());
    ASSERT_TRUE(portfolio.Restore(std::move(begun).Finish()).ok());

    portfolio.Run(Moves(kMoves), [] { return 0.0; }, kNever, [](const Standing&) {});

    const std::string saved = portfolio.Save();
    ArchiveReader in(saved);
    in.Get<uint64_t>();
    ASSERT_EQ(in.Get<uint64_t>(), 2u);
    for (uint64_t i = 0; i < 2; ++i) {
      const std::vector<char> part = in.GetList<char>();
      QapSolver one(q, method, 0x9e3779b97f4a7c15 + i);
      ASSERT_TRUE(one.Restore({part.data(), part.size()}).ok());
      EXPECT_LE(one.best_cost(), found) << "thread " << i;
    }
    EXPECT_LE(portfolio.best().value, found);
  }
}

TEST(QapPortfolio, SeveralThreadsResumeAndKeepTheBest) {
  const QapInstance q = RandomInstance(30, Shape::kBoth, 5);
  QapPortfolio first(q, QapMethod::kAuto, 1, 2);
  first.Run(Moves(20000), [] { return 0.0; }, kNever, [](const Standing&) {});
  QapPortfolio second(q, QapMethod::kAuto, 1, 2);

  ASSERT_TRUE(second.Restore(first.Save()).ok());

  EXPECT_EQ(second.best().value, first.best().value);
  second.Run(Moves(40000), [] { return 0.0; }, kNever, [](const Standing&) {});
  EXPECT_LE(second.best().value, first.best().value);
  EXPECT_FALSE(QapPortfolio(q, QapMethod::kAuto, 1, 1).Restore(first.Save()).ok());
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
