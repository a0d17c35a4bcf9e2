// SPDX-License-Identifier: Apache-2.0
// What the solvers of sekisho rankmap share: the clock, signals and the progress line.
#pragma once

#include <csignal>
#include <iosfwd>

#include "client/rankmap/rankmap_solve.h"
#include "client/terminal_line.h"
#include "common/status.h"
#include "rankmap/portfolio.h"

namespace sekisho::client {

// On MonotonicSeconds' clock; infinity if only --iterations limits.
absl::StatusOr<double> TimeLimit(const RankmapSolveOptions& options, double started);

// SIGINT and SIGTERM end the search, not the program: the best so far is written.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};
bool WasInterrupted();

// If it is due: objective, gap to the bound, rate, time left.
void ShowProgress(const rankmap::Standing& standing, double started, TerminalLine& line);

absl::Status SolveQap(const RankmapSolveOptions& options, std::ostream& out);

// By the tasks of one job, `options.jobs` of them at `options.resource`, that share what they find: rankmap_jobs.cc.
absl::Status SolveByJob(const RankmapSolveOptions& options, std::ostream& out, std::ostream& err);

// What a placement is worth, as --json or in words.
void Report(const RankmapSolveOptions& options, const rankmap::Problem& problem, const rankmap::Placement& best,
            double seconds, std::ostream& out);
// A picture of it beside `before`, if one is wanted.
absl::Status WritePicture(const RankmapSolveOptions& options, const rankmap::Problem& problem,
                          const rankmap::Placement& before, const rankmap::Placement& after);
absl::StatusOr<rankmap::SolveOptions> Translate(const RankmapSolveOptions& options);

}  // namespace sekisho::client
