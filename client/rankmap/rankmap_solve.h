// SPDX-License-Identifier: Apache-2.0
// sekisho rankmap solve: limits, signals, checkpoints and the progress line around
// rankmap::Portfolio.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "common/status.h"
#include "rankmap/solver.h"

namespace sekisho::client {

struct RankmapSolveOptions {
  std::string network;
  std::string pattern;
  std::string qap;  // a .dat instead of the two
  std::string output;
  std::string objective = "hopbytes";
  std::string weight = "messages";
  std::string method = "auto";
  std::string time;
  int64_t iterations = 0;
  std::optional<double> target;
  uint64_t seed = 1;
  int threads = 1;
  int max_itrs = -1;
  int range = 0;
  int num_swaps = 2;
  std::string checkpoint;
  std::string resume;
  std::string start;
  std::string report;
  std::string exchange;  // a folder shared with other searches
  int island = 0;        // our number among them
  int jobs = 0;          // tasks of a job that are to search
  std::string resource;  // where
  bool is_json = false;
  bool is_quiet = false;
};

// 0, or 64 with the reason on `err`.  A result goes to `out`, progress to `err` if it is a
// terminal.
int SolveRankmap(const RankmapSolveOptions& options, std::ostream& out, std::ostream& err);

// "90", "90s", "500ms", "10m", "2h"; 0: what is there at once.
absl::StatusOr<double> ParseSeconds(const std::string& text);

}  // namespace sekisho::client
