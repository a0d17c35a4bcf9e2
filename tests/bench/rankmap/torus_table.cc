// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/rankmap/tables.h"

#include <cstdio>
#include <ctime>

#include "rankmap/generate.h"
#include "rankmap/network_format.h"
#include "rankmap/portfolio.h"

namespace sekisho::bench {
namespace {

using rankmap::Objective;

struct Case {
  const char* name;
  const char* network;
  const char* pattern;
  rankmap::GenerateOptions options;
  Objective objective;
};

const char* kTorus = "torus:16x16x16";

std::vector<Case> Cases(int64_t permute) {
  const rankmap::GenerateOptions bruck{.ranks = 4096, .bytes = 2048, .permute = permute};
  const rankmap::GenerateOptions stencil{.grid = {16, 16, 16}, .permute = permute};
  const rankmap::GenerateOptions halo{.grid = {64, 64}, .permute = permute};
  const rankmap::GenerateOptions fft{.grid = {64, 64}, .bytes = 16384, .permute = permute};
  const rankmap::GenerateOptions fft60{.grid = {60, 60}, .bytes = 16384, .permute = permute};
  const rankmap::GenerateOptions random{.ranks = 4096, .degree = 4, .seed = 5, .permute = permute};
  const rankmap::GenerateOptions odd{.ranks = 1680, .bytes = 2048, .permute = permute};
  const rankmap::GenerateOptions part{.ranks = 4000, .bytes = 2048, .permute = permute};
  return {{"bruck", kTorus, "bruck", bruck, Objective::kHopBytes},
          {"bruck", kTorus, "bruck", bruck, Objective::kMaxLink},
          {"bruck", kTorus, "bruck", bruck, Objective::kRmatt},
          {"bruck", kTorus, "bruck", bruck, Objective::kSteps},
          {"stencil", kTorus, "stencil", stencil, Objective::kHopBytes},
          {"halo", kTorus, "halo", halo, Objective::kHopBytes},
          {"halo", kTorus, "halo", halo, Objective::kMaxLink},
          {"fft rows", kTorus, "fftrows", fft, Objective::kHopBytes},
          {"fft rows", kTorus, "fftrows", fft, Objective::kMaxLink},
          {"fft 60x60", "torus:16x16x15", "fftrows", fft60, Objective::kHopBytes},
          {"random", kTorus, "random", random, Objective::kHopBytes},
          {"random", kTorus, "random", random, Objective::kMaxLink},
          {"bruck 1680", "torus:12x10x14", "bruck", odd, Objective::kHopBytes},
          {"bruck 4000", kTorus, "bruck", part, Objective::kHopBytes}};
}

}  // namespace

void TorusTable(double seconds, int64_t permute, uint64_t seed) {
  std::printf(
      "| pattern | network | objective | avg_hops | max_link | rmatt_eval | step_sum |\n"
      "|---|---|---|---|---|---|---|\n");
  const auto cpu = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  for (const Case& c : Cases(permute)) {
    const auto network = rankmap::ParseNetworkSpec(c.network);
    const auto pattern = rankmap::Generate(c.pattern, c.options);
    CHECK(network.ok() && pattern.ok());
    const double started = cpu();
    rankmap::SolveOptions options;
    options.objective = c.objective;
    options.seed = seed;
    const rankmap::Problem problem(*pattern, *network, options);
    rankmap::Portfolio portfolio(problem, 1, nullptr);
    rankmap::Limits limits;
    limits.started = started;
    limits.until = started + seconds;
    portfolio.Run(
        limits, cpu, [] { return false; }, [](const rankmap::Standing&) {});
    const rankmap::Values v = rankmap::Evaluate(*pattern, *network, portfolio.best());
    std::printf("| %s | %s | %s | %.4f | %ld | %.4g | %ld |\n", c.name, c.network,
                std::string(rankmap::NameOf(c.objective)).c_str(), v.avg_hops, v.max_link,
                v.rmatt_eval(), v.step_sum);
    std::fflush(stdout);
  }
}

}  // namespace sekisho::bench
