// SPDX-License-Identifier: Apache-2.0
#include "rankmap/qap_portfolio.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <numeric>
#include <thread>

namespace sekisho::rankmap {
namespace {

constexpr double kSaveEvery = 1.0;  // seconds
constexpr auto kTickEvery = std::chrono::milliseconds(20);

bool IsReached(const Limits& limits, const Standing& standing) {
  return standing.progress >= 1 || (limits.target && standing.best <= *limits.target);
}

}  // namespace

QapPortfolio::QapPortfolio(const QapInstance& instance, QapMethod method, uint64_t seed, int threads)
    : instance_(instance), saved_(threads), moves_(threads) {
  for (int i = 0; i < threads; ++i) {
    solvers_.push_back(std::make_unique<QapSolver>(
        instance, method, seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(i)));
  }
  best_ = {solvers_[0]->best_cost(), solvers_[0]->best()};
}

QapSolution QapPortfolio::best() const {
  const std::lock_guard lock(mutex_);
  return best_;
}

void QapPortfolio::Publish(size_t island) {
  const QapSolver& solver = *solvers_[island];
  moves_[island] = solver.moves();
  if (solver.best_cost() < best_.value) {
    best_ = {solver.best_cost(), solver.best()};
  }
}

Standing QapPortfolio::StandingAt(const Limits& limits, const Portfolio::Clock& clock) const {
  Standing standing;
  standing.best = static_cast<double>(best_.value);
  standing.moves = std::accumulate(moves_.begin(), moves_.end(), int64_t{0});
  standing.phase = "swaps";
  standing.progress = limits.moves > 0
                          ? static_cast<double>(standing.moves) / static_cast<double>(limits.moves)
                          : (clock() - limits.started) / std::max(limits.until - limits.started, 1e-9);
  return standing;
}

void QapPortfolio::Run(const Limits& limits, const Portfolio::Clock& clock, const Stop& stop,
                       const Portfolio::Tick& tick) {
  if (instance_.size < 2) {
    return;
  }
  if (solvers_.size() == 1) {
    return RunOne(limits, clock, stop, tick);
  }
  is_threaded_ = true;
  std::atomic<bool> is_stopped = false;
  size_t running = solvers_.size();  // under the mutex
  std::condition_variable is_last;
  const Stop is_over = [&] { return is_stopped.load(std::memory_order_relaxed); };
  std::vector<std::thread> threads;
  for (size_t island = 0; island < solvers_.size(); ++island) {
    threads.emplace_back([&, island] {
      RunThread(island, clock, is_over);
      const std::lock_guard lock(mutex_);
      --running;
      is_last.notify_one();
    });
  }
  for (bool are_all_done = false; !are_all_done;) {
    Standing standing;
    {
      std::unique_lock lock(mutex_);
      are_all_done = is_last.wait_for(lock, kTickEvery, [&] { return running == 0; });
      standing = StandingAt(limits, clock);
    }
    tick(standing);
    if (stop() || IsReached(limits, standing)) {
      is_stopped.store(true);
    }
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void QapPortfolio::RunThread(size_t island, const Portfolio::Clock& clock, const Stop& is_over) {
  QapSolver& solver = *solvers_[island];
  double saved_at = clock();
  while (!is_over()) {
    solver.Step(is_over);
    const double now = clock();
    const std::lock_guard lock(mutex_);
    Publish(island);
    if (solver.is_between_rounds() && best_.value < solver.best_cost()) {
      solver.Offer(best_.permutation, best_.value);
    }
    if (now - saved_at > kSaveEvery) {
      saved_[island] = solver.Save();
      saved_at = now;
    }
  }
  const std::lock_guard lock(mutex_);
  saved_[island] = solver.Save();
}

void QapPortfolio::RunOne(const Limits& limits, const Portfolio::Clock& clock, const Stop& stop,
                          const Portfolio::Tick& tick) {
  const auto show = [&] {
    const Standing standing = StandingAt(limits, clock);
    tick(standing);
    return standing;
  };
  // Long constructions ask this every now and then; what is saved meanwhile is the state before them.
  const Stop is_over = [&] { return IsReached(limits, show()) || stop(); };
  while (!is_over()) {
    solvers_[0]->Step(is_over);
    const std::lock_guard lock(mutex_);
    Publish(0);
  }
}

}  // namespace sekisho::rankmap
