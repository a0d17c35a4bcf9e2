// SPDX-License-Identifier: Apache-2.0
#include "client/rankmap/rankmap_run.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <fmt/format.h>

namespace sekisho::client {
namespace {

constexpr double kDefaultSeconds = 60;
constexpr double kSpareSeconds = 0.03;  // to write the result within --time

std::atomic<bool> was_interrupted = false;

}  // namespace

absl::StatusOr<double> TimeLimit(const RankmapSolveOptions& options, double started) {
  if (options.iterations > 0) {
    if (!options.time.empty()) {
      return absl::InvalidArgumentError("--time and --iterations exclude each other");
    }
    return INFINITY;
  }
  double seconds = kDefaultSeconds;
  if (!options.time.empty()) {
    ASSIGN_OR_RETURN(seconds, ParseSeconds(options.time));
  }
  return started + std::max(seconds - kSpareSeconds, seconds * 0.9);
}

SignalGuard::SignalGuard() {
  was_interrupted.store(false);
  struct sigaction action {};
  action.sa_handler = [](int) { was_interrupted.store(true); };
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

SignalGuard::~SignalGuard() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

bool WasInterrupted() { return was_interrupted.load(); }

void ShowProgress(const rankmap::Standing& s, double started, TerminalLine& line) {
  if (!line.IsDue()) {
    return;
  }
  const double elapsed = std::max(MonotonicSeconds() - started, 1e-3);
  const double left = s.progress > 0.01 ? elapsed * std::max(1 - s.progress, 0.0) / s.progress : 0;
  const std::string gap =
      s.bound > 0 ? fmt::format("{:.1f} % above the bound  ", 100 * (s.best / s.bound - 1)) : "";
  line.Show(fmt::format("{} {:.6g}  {}{:.0f} moves/s  {:.0f} s left  {}", Bar(s.progress, 20), s.best, gap,
                        static_cast<double>(s.moves) / elapsed, left, s.phase));
}

}  // namespace sekisho::client
