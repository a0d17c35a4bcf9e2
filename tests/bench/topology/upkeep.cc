// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "tests/bench/topology/tables.h"
#include "topology/revise.h"
#include "topology/run.h"
#include "topology/sim/families.h"
#include "topology/sim/network.h"
#include "topology/sim/score.h"

namespace sekisho::bench {
namespace {

using namespace topology;

constexpr int kRounds = 20;

struct Revised {
  Tree tree;
  Revision revision;
  RunTotals totals;
};

Revised Revise(const sim::Truth& truth, const Tree& known, uint64_t seed) {
  sim::Network network(truth, seed);
  ReviseMethod method({known, std::vector<bool>(truth.host_count, true)}, seed);
  const auto totals = RunVirtually(method, [&](const Request& request, double) {
    return absl::StatusOr<Answer>(network.Measure(request));
  });
  Tree tree = method.Finish().tree;
  return {std::move(tree), method.revision(), *totals};
}

// The host's link ends where that of another, as far from it as there is one in its site, does.
bool PlugInElsewhere(sim::Truth& truth, int host) {
  const Rooted before = HangUp(TreeOf(truth), host);
  int far = -1;
  for (int other = 0; other < truth.host_count; ++other) {
    if (truth.cluster_of[other] == truth.cluster_of[host] && before.Hops(host, other) > 2 &&
        (far < 0 || before.Hops(host, other) > before.Hops(host, far))) {
      far = other;
    }
  }
  if (far < 0) {
    return false;
  }
  int there = -1;
  for (const sim::TruthLink& link : truth.links) {
    there = link.u == far ? link.v : link.v == far ? link.u : there;
  }
  for (sim::TruthLink& link : truth.links) {
    if (link.u == host || link.v == host) {
      (link.u == host ? link.v : link.u) = there;
    }
  }
  return true;
}

void Family(const std::string& family, const Options& options) {
  double checks = 0, false_moves = 0, false_anew = 0, check_pairs = 0, check_s = 0;
  double joins = 0, placed = 0, join_accuracy = 0, join_before = 0, join_pairs = 0;
  double moves = 0, found = 0, move_accuracy = 0;
  for (int i = 0; i < options.seeds; ++i) {
    const uint64_t seed = options.first_seed + static_cast<uint64_t>(i);
    sim::Truth truth = *sim::MakeFamily(family, seed);
    const int n = truth.host_count;
    const Tree first = Revise(truth, {.host_count = n, .vertex_count = n, .links = {}}, seed).tree;

    Tree tree = first;
    for (int round = 0; round < kRounds; ++round) {
      Revised revised = Revise(truth, tree, seed * 100 + static_cast<uint64_t>(round));
      ++checks;
      false_moves += static_cast<double>(revised.revision.moved.size());
      false_anew += revised.revision.is_anew ? 1 : 0;
      check_pairs += static_cast<double>(revised.totals.measurements) / n;
      check_s += revised.totals.makespan_us / 1e6;
      tree = std::move(revised.tree);
    }

    // An eighth of the hosts joins.
    std::vector<bool> is_new(n, false);
    for (int host = 0; host < n; host += 8) {
      is_new[host] = true;
    }
    const Revised joined = Revise(truth, Without(first, is_new), seed + 7);
    joins += static_cast<double>(std::count(is_new.begin(), is_new.end(), true));
    placed += static_cast<double>(joined.revision.placed.size());
    join_before += sim::Judge(truth, first, 20000).accuracy;
    join_accuracy += sim::Judge(truth, joined.tree, 20000).accuracy;
    join_pairs += static_cast<double>(joined.totals.measurements) / n;

    for (int host = 1; host < n && host < 80; host += 16) {
      sim::Truth other = truth;
      if (PlugInElsewhere(other, host)) {
        const Revised moved = Revise(other, first, seed + 9);
        ++moves;
        const auto& which = moved.revision.moved;
        found += moved.revision.is_anew || std::count(which.begin(), which.end(), host) > 0 ? 1 : 0;
        move_accuracy += sim::Judge(other, moved.tree, 20000).accuracy;
      }
    }
  }
  std::printf(
      "%-12s %4.0f checks: %.1f pairs a host, %.3f s; wrongly moved %.0f, wrongly anew %.0f | "
      "joined "
      "%.0f of %.0f, accuracy %.4f (%.4f before), %.1f pairs a host | moved: found %.0f of %.0f, "
      "accuracy %.4f\n",
      family.c_str(), checks, check_pairs / checks, check_s / checks, false_moves, false_anew,
      placed, joins, join_accuracy / options.seeds, join_before / options.seeds,
      join_pairs / options.seeds, found, moves, moves > 0 ? move_accuracy / moves : 0);
  std::fflush(stdout);
}

}  // namespace

void UpkeepTable(const Options& options) {
  std::vector<std::string> families = options.families;
  if (families.empty()) {
    families = {"single64", "single64lab", "star48lab", "deep128",     "vm192",
                "grid256",  "grid256lab",  "skew256",   "grid256busy", "flat1024"};
  }
  for (const std::string& family : families) {
    Family(family, options);
  }
}

}  // namespace sekisho::bench
