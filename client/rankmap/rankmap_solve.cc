// SPDX-License-Identifier: Apache-2.0
#include "client/rankmap/rankmap_solve.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/rankmap/rankmap_exchange.h"
#include "client/rankmap/rankmap_files.h"
#include "client/rankmap/rankmap_run.h"
#include "rankmap/errors.h"
#include "rankmap/pattern_format.h"
#include "rankmap/portfolio.h"
#include "rankmap/report.h"

namespace sekisho::client {
namespace {

constexpr int kUsageError = 64;
constexpr double kWriteEvery = 5;
constexpr double kFirstOutputAfter = 0.05;
constexpr double kExchangeEvery = 1;
constexpr char kStandardOutput[] = "-";

struct Run {
  const RankmapSolveOptions& options;
  const rankmap::Problem& problem;
  rankmap::Portfolio& portfolio;
  double started;
  double written_value = INFINITY;
  double next_write = 0;
  std::optional<Exchange> exchange;
  bool is_over = false;  // as the first of them has said
  double published_value = INFINITY;
  double next_exchange = 0;

  std::string Best() const {
    return rankmap::PrintPlacement(
        rankmap::ToNodes(problem.network, problem.pattern.ranks(), portfolio.best()));
  }
  // Of searches that share a folder, the first one's result is that of all.
  bool IsMine() const { return !exchange || exchange->island() == 0; }
  absl::Status WriteLast(std::ostream& out) {
    if (exchange) {
      RETURN_IF_ERROR(ExchangeBests());
    }
    if (!IsMine()) {
      return absl::OkStatus();
    }
    if (exchange) {
      exchange->Remove();
    }
    if (options.output == kStandardOutput) {
      out << Best();
      return absl::OkStatus();
    }
    return WriteResult();
  }
  void TakeNews() {
    for (const std::string& text : exchange->News()) {
      const auto nodes = rankmap::ParsePlacement(text, "");
      const auto placement = nodes.ok()
                                 ? rankmap::FromNodes(problem.network, problem.pattern.ranks(), *nodes)
                                 : absl::StatusOr<rankmap::Placement>(nodes.status());
      if (placement.ok()) {  // else another problem's, or not of ours
        portfolio.Offer(*placement, problem.Value(*placement));
      }
    }
  }
  absl::Status ExchangeBests() {
    is_over = exchange->IsOver();
    TakeNews();
    const double value = portfolio.best_value();
    if (value < published_value) {
      RETURN_IF_ERROR(exchange->Publish(Best()));
      published_value = value;
    }
    return absl::OkStatus();
  }

  absl::Status WriteResult() {
    const double value = portfolio.best_value();
    if (value < written_value && IsMine() && options.output != kStandardOutput) {
      RETURN_IF_ERROR(WriteFile(options.output, Best()));
      written_value = value;
    }
    return absl::OkStatus();
  }
  absl::Status WriteCheckpoint() {
    return options.checkpoint.empty() ? absl::OkStatus()
                                      : WriteFile(options.checkpoint, portfolio.Save());
  }
  absl::Status Tick() {
    const double now = MonotonicSeconds();
    if (exchange && now >= next_exchange) {
      next_exchange = now + kExchangeEvery;
      RETURN_IF_ERROR(ExchangeBests());
    }
    if (now < next_write) {
      return absl::OkStatus();
    }
    next_write = now + kWriteEvery;
    RETURN_IF_ERROR(WriteCheckpoint());  // first: no result is better than what a resumed search begins with
    return WriteResult();
  }
};

// When to end so that large results, too, are judged and written in time: that takes about as long as it took to judge the
// first placement, by this machine and beside what else it does.
double BeforeTheEnd(double until, double started, double judging) {
  constexpr double kMostShare = 0.1;
  return std::isfinite(until) ? until - std::min(judging, kMostShare * (until - started)) : until;
}

absl::Status Solve(const RankmapSolveOptions& options, std::ostream& out) {
  const double started = MonotonicSeconds();
  if (!options.exchange.empty() && Exchange(options.exchange, options.island).IsOver()) {
    return options.island > 0 ? absl::OkStatus()  // come too late, the others have ended
                              : absl::InvalidArgumentError(fmt::format(
                                    "--exchange {}: expected a folder that is there", options.exchange));
  }
  ASSIGN_OR_RETURN(const rankmap::SolveOptions solve, Translate(options));
  ASSIGN_OR_RETURN(const double until, TimeLimit(options, started));
  if (options.network.empty() || options.pattern.empty()) {
    return absl::InvalidArgumentError("--network and --pattern (or --qap) are needed");
  }
  if (!options.report.empty() && !options.report.ends_with(".svg") && !options.report.ends_with(".html")) {
    return absl::InvalidArgumentError(
        fmt::format("--report {}: expected a name that ends with .svg or .html", options.report));
  }
  ASSIGN_OR_RETURN(const rankmap::Network network, ReadNetwork(options.network));
  ASSIGN_OR_RETURN(const rankmap::Pattern pattern, ReadPattern(options.pattern));
  RETURN_IF_ERROR(CheckFit({options.pattern, options.network}, pattern, network, solve.objective));
  std::optional<rankmap::Placement> start;
  if (!options.start.empty()) {
    ASSIGN_OR_RETURN(start, ReadPlacement(options.start, pattern, network));
  }

  const SignalGuard signals;
  const rankmap::Problem problem(pattern, network, solve);
  const double ready = MonotonicSeconds();
  rankmap::Portfolio portfolio(problem, options.threads, start ? &*start : nullptr,
                               options.exchange.empty() ? 0 : options.island * options.threads);
  if (!options.resume.empty()) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(options.resume));
    if (const absl::Status restored = portfolio.Restore(bytes); !restored.ok()) {
      return rankmap::errors::BadFile(options.resume, 0, std::string(restored.message()));
    }
  }
  rankmap::Limits limits;
  limits.moves = options.iterations;
  limits.started = started;
  limits.until = BeforeTheEnd(until, started, (MonotonicSeconds() - ready) / options.threads);
  limits.target = options.target;

  Run run{options, problem, portfolio, started};
  if (!options.exchange.empty()) {
    run.exchange.emplace(options.exchange, options.island);
  }
  run.next_write = started + kFirstOutputAfter;
  TerminalLine line(!options.is_quiet);
  absl::Status failed;
  portfolio.Run(
      limits, MonotonicSeconds,
      [&] { return WasInterrupted() || !failed.ok() || run.is_over; },
      [&](const rankmap::Standing& standing) {
        ShowProgress(standing, started, line);
        if (failed.ok()) {
          failed = run.Tick();
        }
      });
  line.Close();
  RETURN_IF_ERROR(failed);
  RETURN_IF_ERROR(run.WriteCheckpoint());
  RETURN_IF_ERROR(run.WriteLast(out));
  const double seconds = MonotonicSeconds() - started;
  RETURN_IF_ERROR(WritePicture(options, problem, start ? *start : rankmap::Placement(network.slots()),
                               portfolio.best()));
  if (run.IsMine() && options.output != kStandardOutput) {
    Report(options, problem, portfolio.best(), seconds, out);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<rankmap::SolveOptions> Translate(const RankmapSolveOptions& options) {
  rankmap::SolveOptions result;
  ASSIGN_OR_RETURN(result.objective, rankmap::ParseObjective(options.objective));
  if (options.weight != "messages" && options.weight != "bytes") {
    return absl::InvalidArgumentError("--weight: expected messages or bytes");
  }
  result.qap_weight =
      options.weight == "bytes" ? rankmap::Weight::kBytes : rankmap::Weight::kMessages;
  static constexpr const char* kMethods[] = {"auto", "bisem", "optim", "anneal"};
  const auto* found = std::find(std::begin(kMethods), std::end(kMethods), options.method);
  if (found == std::end(kMethods)) {
    return absl::InvalidArgumentError("--method: expected auto, bisem, optim or anneal");
  }
  result.method = static_cast<rankmap::Method>(found - std::begin(kMethods));
  if (options.num_swaps < 2 || options.num_swaps > 64 || options.range < 0) {
    return absl::InvalidArgumentError("--range from 0, --num-swaps from 2 to 64");
  }
  result.seed = options.seed;
  result.max_itrs = options.max_itrs;
  result.range = options.range;
  result.num_swaps = options.num_swaps;
  return result;
}

void Report(const RankmapSolveOptions& options, const rankmap::Problem& problem,
            const rankmap::Placement& best, double seconds, std::ostream& out) {
  const rankmap::Values values = rankmap::Evaluate(problem.pattern, problem.network, best);
  const double value =
      rankmap::ObjectiveValue(values, problem.options.objective, problem.options.qap_weight);
  if (options.is_json) {
    nlohmann::json json = {{"objective", rankmap::NameOf(problem.options.objective)},
                           {"value", value},
                           {"bound", problem.bound},
                           {"hop_bytes", values.hop_bytes},
                           {"avg_hops", values.avg_hops},
                           {"hops_sum", values.hops_sum},
                           {"max_link", values.max_link},
                           {"rmatt_eval", values.rmatt_eval()},
                           {"step_sum", values.step_sum},
                           {"seconds", seconds}};
    out << json.dump(2) << '\n';
    return;
  }
  out << fmt::format("{} {:.10g}, avg_hops {:.4f}, max_link {}, in {:.1f} s\n",
                     rankmap::NameOf(problem.options.objective), value, values.avg_hops,
                     values.max_link, seconds);
}

absl::Status WritePicture(const RankmapSolveOptions& options, const rankmap::Problem& problem,
                          const rankmap::Placement& before, const rankmap::Placement& after) {
  if (options.report.empty()) {
    return absl::OkStatus();
  }
  const auto render = options.report.ends_with(".svg") ? rankmap::RenderSvg : rankmap::RenderHtml;
  return WriteFile(options.report, render(problem.pattern, problem.network, before, after));
}

absl::StatusOr<double> ParseSeconds(const std::string& text) {
  size_t used = 0;
  double value = 0;
  const char* first = text.c_str();
  char* end = nullptr;
  value = std::strtod(first, &end);
  used = static_cast<size_t>(end - first);
  const std::string unit = text.substr(used);
  const double factor = unit.empty() || unit == "s"    ? 1
                        : unit == "ms"                 ? 1e-3
                        : unit == "m" || unit == "min" ? 60
                        : unit == "h"                  ? 3600
                                                       : 0;
  if (used == 0 || factor == 0 || !(value >= 0) || !std::isfinite(value)) {
    return absl::InvalidArgumentError(
        fmt::format("time '{}': expected a number from 0 with s, ms, m or h", text));
  }
  return value * factor;
}

int SolveRankmap(const RankmapSolveOptions& options, std::ostream& out, std::ostream& err) {
  const absl::Status status = options.jobs > 0        ? SolveByJob(options, out, err)
                              : options.qap.empty() ? Solve(options, out)
                                                    : SolveQap(options, out);
  if (!status.ok()) {
    err << std::string(status.message()) << '\n';
    return kUsageError;
  }
  return 0;
}

}  // namespace sekisho::client
