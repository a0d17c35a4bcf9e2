// SPDX-License-Identifier: Apache-2.0
// sekisho rankmap solve --qap: QAPLIB instances.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <ostream>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/rankmap/rankmap_files.h"
#include "client/rankmap/rankmap_run.h"
#include "client/rankmap/rankmap_solve.h"
#include "rankmap/bound.h"
#include "rankmap/errors.h"
#include "rankmap/qap_solver.h"

namespace sekisho::client {
namespace {

constexpr double kCheckpointEvery = 5;

absl::StatusOr<rankmap::QapMethod> Method(const std::string& name) {
  static constexpr const char* kNames[] = {"auto", "grasp", "tabu", "iterated"};
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    return absl::InvalidArgumentError(
        "--method with --qap: expected auto, grasp, tabu or iterated");
  }
  return static_cast<rankmap::QapMethod>(found - std::begin(kNames));
}

class QapRun {
 public:
  QapRun(const RankmapSolveOptions& options, const rankmap::QapInstance& instance,
         rankmap::QapMethod method, double started, double until)
      : options_(options), instance_(instance), started_(started), until_(until) {
    for (int i = 0; i < options.threads; ++i) {
      solvers_.push_back(std::make_unique<rankmap::QapSolver>(
          instance, method, options.seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(i)));
    }
  }

  absl::Status Restore(std::string_view bytes) {
    if (solvers_.size() != 1) {
      return absl::InvalidArgumentError("--resume with --qap needs --threads 1");
    }
    return solvers_[0]->Restore(bytes);
  }

  absl::Status Run() {
    std::vector<std::thread> threads;
    for (size_t i = 1; i < solvers_.size(); ++i) {
      threads.emplace_back([this, i] {
        while (!IsOver() && !is_stopped_.load()) {
          Work(*solvers_[i]);
        }
      });
    }
    const absl::Status status = Lead();
    is_stopped_.store(true);
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (const auto& solver : solvers_) {
      Publish(*solver);
    }
    return status;
  }

  rankmap::QapSolution Solution() {
    const std::lock_guard lock(mutex_);
    return {best_cost_, best_};
  }

 private:
  bool IsOver() const {
    return WasInterrupted() || MonotonicSeconds() >= until_ ||
           (options_.iterations > 0 && moves_.load() >= options_.iterations) ||
           (options_.target && static_cast<double>(shared_cost_.load()) <= *options_.target);
  }

  void Publish(const rankmap::QapSolver& solver) {
    const std::lock_guard lock(mutex_);
    if (best_.empty() || solver.best_cost() < best_cost_) {
      best_cost_ = solver.best_cost();
      best_ = solver.best();
      shared_cost_.store(best_cost_);
    }
  }

  void Work(rankmap::QapSolver& solver) {
    const int64_t before = solver.moves();
    solver.Step([] { return false; });
    moves_.fetch_add(std::max<int64_t>(solver.moves() - before, 0));
    if (solver.best_cost() < shared_cost_.load()) {
      Publish(solver);
    }
  }

  absl::Status Lead() {
    rankmap::QapSolver& solver = *solvers_[0];
    moves_.store(solver.moves());
    TerminalLine line(!options_.is_quiet);
    double next_checkpoint = started_ + kCheckpointEvery;
    absl::Status status;
    while (!IsOver() && status.ok() && instance_.size > 1) {
      Work(solver);
      const double now = MonotonicSeconds();
      ShowProgress({static_cast<double>(shared_cost_.load()), 0,
                    options_.iterations > 0
                        ? static_cast<double>(moves_.load()) / static_cast<double>(options_.iterations)
                        : (now - started_) / (until_ - started_),
                    moves_.load(), "tabu"},
                   started_, line);
      if (now >= next_checkpoint) {
        next_checkpoint = now + kCheckpointEvery;
        status = Checkpoint();
      }
    }
    line.Close();
    return status.ok() ? Checkpoint() : status;
  }

  absl::Status Checkpoint() const {
    return options_.checkpoint.empty() ? absl::OkStatus()
                                       : WriteFile(options_.checkpoint, solvers_[0]->Save());
  }

  const RankmapSolveOptions& options_;
  const rankmap::QapInstance& instance_;
  double started_;
  double until_;
  std::vector<std::unique_ptr<rankmap::QapSolver>> solvers_;
  std::atomic<bool> is_stopped_ = false;
  std::atomic<int64_t> moves_ = 0;
  std::atomic<int64_t> shared_cost_ = INT64_MAX;
  std::mutex mutex_;
  std::vector<int> best_;
  int64_t best_cost_ = 0;
};

}  // namespace

absl::Status SolveQap(const RankmapSolveOptions& options, std::ostream& out) {
  const double started = MonotonicSeconds();
  ASSIGN_OR_RETURN(const rankmap::QapMethod method, Method(options.method));
  ASSIGN_OR_RETURN(const double until, TimeLimit(options, started));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(options.qap));
  ASSIGN_OR_RETURN(const rankmap::QapInstance instance, rankmap::ParseQap(text, options.qap));

  const SignalGuard signals;
  QapRun run(options, instance, method, started, until);
  if (!options.resume.empty()) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(options.resume));
    if (const absl::Status restored = run.Restore(bytes); !restored.ok()) {
      return rankmap::errors::BadFile(options.resume, 0, std::string(restored.message()));
    }
  }
  RETURN_IF_ERROR(run.Run());

  rankmap::QapSolution solution = run.Solution();
  solution.value = instance.Cost(solution.permutation);
  if (options.output == "-") {
    out << rankmap::PrintQapSolution(solution);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(WriteFile(options.output, rankmap::PrintQapSolution(solution)));
  const double seconds = MonotonicSeconds() - started;
  out << (options.is_json
              ? nlohmann::json(
                    {{"objective", "qap"}, {"value", solution.value}, {"seconds", seconds}})
                        .dump() +
                    "\n"
              : fmt::format("qap {}, in {:.1f} s\n", solution.value, seconds));
  return absl::OkStatus();
}

}  // namespace sekisho::client
