// SPDX-License-Identifier: Apache-2.0
// The tables and figures of topology_bench.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sekisho::bench {

struct Options {
  uint64_t first_seed = 1000;
  int seeds = 10;
  std::string method = "fast";
  std::string directory = ".";  // where pictures go
  std::vector<std::string> families;
  bool is_each = false;  // a line for each run as well
};

// A row a family, of all if the options name none: minimum / median / maximum over the seeds,
// against the goals.  False: a goal is missed.
bool Goals(const Options& options, const std::vector<std::string_view>& all);

void ErrorDistributions(const Options& options);  // figure 8 of paper 003
void TimesAndPairs(const Options& options);       // figures 9 and 10
void AlphaSweep(const Options& options);          // figure 5 of paper 000
// How well a known tree is kept: false alarms, hosts that join, hosts that are plugged in
// elsewhere.
void UpkeepTable(const Options& options);

// Lines through (x, y) points, a legend each.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
};
void WritePlot(const std::string& path, const std::string& title, const std::string& x_label,
               const std::string& y_label, const std::vector<Series>& series, bool is_log = false);

}  // namespace sekisho::bench
