// SPDX-License-Identifier: Apache-2.0
// sekisho rankmap solve --qap: QAPLIB instances.
#include <algorithm>
#include <optional>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/rankmap/rankmap_files.h"
#include "client/rankmap/rankmap_run.h"
#include "client/rankmap/rankmap_solve.h"
#include "rankmap/errors.h"
#include "rankmap/qap_portfolio.h"

namespace sekisho::client {
namespace {

constexpr double kFirstWait = 0.1;  // between two writings, at first and at most
constexpr double kMostWait = 2;
constexpr char kStandardOutput[] = "-";

absl::StatusOr<rankmap::QapMethod> Method(const std::string& name) {
  static constexpr const char* kNames[] = {"auto", "grasp", "tabu", "iterated"};
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) {
    return absl::InvalidArgumentError(
        "--method with --qap: expected auto, grasp, tabu or iterated");
  }
  return static_cast<rankmap::QapMethod>(found - std::begin(kNames));
}

// What is written while the search goes on.
struct QapRun {
  const RankmapSolveOptions& options;
  const rankmap::QapPortfolio& portfolio;
  double next_write = 0;
  double wait = kFirstWait;
  std::optional<int64_t> written_value;

  // The checkpoint first: no solution is ever better than what a resumed search begins with.
  absl::Status Write() {
    if (!options.checkpoint.empty()) {
      RETURN_IF_ERROR(WriteFile(options.checkpoint, portfolio.Save()));
    }
    const rankmap::QapSolution solution = portfolio.best();
    if (options.output == kStandardOutput || (written_value && solution.value >= *written_value)) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(WriteFile(options.output, rankmap::PrintQapSolution(solution)));
    written_value = solution.value;
    return absl::OkStatus();
  }
  absl::Status Tick() {
    const double now = MonotonicSeconds();
    if (now < next_write) {
      return absl::OkStatus();
    }
    next_write = now + wait;
    wait = std::min(2 * wait, kMostWait);
    return Write();
  }
};

}  // namespace

absl::Status SolveQap(const RankmapSolveOptions& options, std::ostream& out) {
  const double started = MonotonicSeconds();
  ASSIGN_OR_RETURN(const rankmap::QapMethod method, Method(options.method));
  ASSIGN_OR_RETURN(const double until, TimeLimit(options, started));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(options.qap));
  ASSIGN_OR_RETURN(const rankmap::QapInstance instance, rankmap::ParseQap(text, options.qap));

  const SignalGuard signals;
  rankmap::QapPortfolio portfolio(instance, method, options.seed, options.threads);
  if (!options.resume.empty()) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(options.resume));
    if (const absl::Status restored = portfolio.Restore(bytes); !restored.ok()) {
      return rankmap::errors::BadFile(options.resume, 0, std::string(restored.message()));
    }
  }
  rankmap::Limits limits;
  limits.moves = options.iterations;
  limits.started = started;
  limits.until = until;
  limits.target = options.target;
  QapRun run{options, portfolio};
  TerminalLine line(!options.is_quiet);
  absl::Status failed;
  portfolio.Run(
      limits, MonotonicSeconds, [&] { return WasInterrupted() || !failed.ok(); },
      [&](const rankmap::Standing& standing) {
        ShowProgress(standing, started, line);
        if (failed.ok()) {
          failed = run.Tick();
        }
      });
  line.Close();
  RETURN_IF_ERROR(failed);
  RETURN_IF_ERROR(run.Write());

  const rankmap::QapSolution solution = portfolio.best();
  if (options.output == kStandardOutput) {
    out << rankmap::PrintQapSolution(solution);
    return absl::OkStatus();
  }
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
