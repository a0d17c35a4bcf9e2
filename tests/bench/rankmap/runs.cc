// SPDX-License-Identifier: Apache-2.0
// A search by processor seconds, for a machine with other work on it; and what a checkpoint costs.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "client/rankmap/rankmap_files.h"
#include "client/rankmap/rankmap_run.h"
#include "rankmap/pattern_format.h"
#include "rankmap/portfolio.h"
#include "tests/bench/rankmap/tables.h"

namespace sekisho::bench {
namespace {

double Cpu() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

absl::Status Solve(const SearchOptions& search) {
  ASSIGN_OR_RETURN(const rankmap::Network network, client::ReadNetwork(search.network));
  ASSIGN_OR_RETURN(const rankmap::Pattern pattern, client::ReadPattern(search.pattern));
  rankmap::SolveOptions options;
  ASSIGN_OR_RETURN(options.objective, rankmap::ParseObjective(search.objective));
  const rankmap::Problem problem(pattern, network, options);
  rankmap::Portfolio portfolio(problem, 1, nullptr);
  rankmap::Limits limits;
  limits.until = search.seconds;
  if (search.target > 0) {
    limits.target = search.target;
  }
  portfolio.Run(limits, Cpu, [] { return false; }, [](const rankmap::Standing&) {});
  const auto nodes = rankmap::ToNodes(network, pattern.ranks(), portfolio.best());
  return client::WriteFile(search.output, rankmap::PrintPlacement(nodes));
}

// In a search for link loads, which has the largest state.
absl::Status Checkpoint(const std::string& network_name, const std::string& pattern_path) {
  ASSIGN_OR_RETURN(const rankmap::Network network, client::ReadNetwork(network_name));
  ASSIGN_OR_RETURN(const rankmap::Pattern pattern, client::ReadPattern(pattern_path));
  rankmap::SolveOptions options;
  options.objective = rankmap::Objective::kMaxLink;
  options.method = rankmap::Method::kAnneal;
  const rankmap::Problem problem(pattern, network, options);
  rankmap::Portfolio portfolio(problem, 1, nullptr);
  rankmap::Limits limits;
  limits.started = Cpu();
  limits.until = limits.started + 10;
  std::vector<double> spent;
  const std::string path = pattern_path + ".checkpoint";
  portfolio.Run(
      limits, Cpu, [&] { return spent.size() >= 9; },
      [&](const rankmap::Standing& standing) {
        if (standing.phase != "anneal loads" || spent.size() >= 9) {
          return;
        }
        const double began = client::MonotonicSeconds();
        CHECK(client::WriteFile(path, portfolio.Save()).ok());
        spent.push_back(client::MonotonicSeconds() - began);
      });
  if (spent.empty()) {
    return absl::InternalError("it never came to annealing the loads");
  }
  std::sort(spent.begin(), spent.end());
  std::printf("%.3f %.3f\n", 1e3 * spent[spent.size() / 2], 1e3 * spent.back());
  return absl::OkStatus();
}

int Code(const absl::Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  }
  return status.ok() ? 0 : 64;
}

}  // namespace

int SolveByCpu(const SearchOptions& search) { return Code(Solve(search)); }
int TimeCheckpoints(const std::string& network, const std::string& pattern) { return Code(Checkpoint(network, pattern)); }

}  // namespace sekisho::bench
