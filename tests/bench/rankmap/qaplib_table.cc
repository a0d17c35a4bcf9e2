// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/rankmap/tables.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "client/rankmap/rankmap_files.h"
#include "rankmap/qap_solver.h"

namespace sekisho::bench {
namespace {

// The best known values: lines "| name | n | value | ..." of SOURCES.md in the directory.
std::map<std::string, int64_t> BestKnown(const std::string& directory) {
  std::map<std::string, int64_t> best;
  std::ifstream file(directory + "/SOURCES.md");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string bar1, name, bar2, size, bar3;
    int64_t value = 0;
    if (words >> bar1 >> name >> bar2 >> size >> bar3 >> value && bar1 == "|") {
      best[name] = value;
    }
  }
  best["kra32"] = 17740;  // the list has five times the file's value
  return best;
}

struct Row {
  double gap = 0;
  int solved = 0;
  int count = 0;
  void Add(double g) {
    gap += g;
    solved += g <= 0;
    ++count;
  }
};

}  // namespace

void QaplibTable(const std::string& directory, double seconds, int every, uint64_t seed,
                 rankmap::QapMethod method) {
  std::map<std::string, Row> rows;
  double worst = 0;
  std::string worst_name;
  int k = 0;
  for (const auto& [name, value] : BestKnown(directory)) {
    const std::string path = directory + "/" + name + ".dat";
    if (value <= 0 || k++ % every != 0 || !std::filesystem::exists(path)) {
      continue;
    }
    const auto text = client::ReadFile(path);
    const auto instance = rankmap::ParseQap(*text, path);
    if (!instance.ok()) {
      std::printf("%s: %s\n", name.c_str(), std::string(instance.status().message()).c_str());
      continue;
    }
    const auto cpu = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
    const double until = cpu() + seconds;
    rankmap::QapSolver solver(*instance, method, seed);
    while (cpu() < until && solver.best_cost() > value) {
      solver.Step([&] { return cpu() >= until; });
    }
    const double gap =
        100.0 * static_cast<double>(solver.best_cost() - value) / static_cast<double>(value);
    rows["all"].Add(gap);
    rows[instance->size >= 50 ? "n >= 50" : instance->size <= 36 ? "n <= 36" : "37 to 49"].Add(gap);
    if (gap > worst) {
      worst = gap;
      worst_name = name;
    }
    if (gap > 0.005) {
      std::printf("  %-9s %12ld  %+.3f %%\n", name.c_str(), solver.best_cost(), gap);
    }
  }
  std::printf("| QAPLIB, %g s CPU, one thread | mean gap %% | at best known |\n|---|---|---|\n",
              seconds);
  for (const auto& [name, row] : rows) {
    std::printf("| %s | %.4f | %d of %d |\n", name.c_str(), row.gap / row.count, row.solved,
                row.count);
  }
  std::printf("worst: %s %.3f %%\n", worst_name.c_str(), worst);
}

}  // namespace sekisho::bench
