// SPDX-License-Identifier: Apache-2.0
#include "topology/sim/trial.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "topology/methods.h"
#include "topology/neighbour_joining.h"
#include "topology/sim/network.h"

namespace sekisho::topology::sim {
namespace {

using Events = std::vector<std::vector<std::pair<double, int>>>;  // of each host: time, change

int MostAtOnce(Events& events) {
  int most = 0;
  for (auto& of_host : events) {
    std::sort(of_host.begin(), of_host.end());
    int now = 0;
    for (const auto& [time, change] : of_host) {
      now += change;
      most = std::max(most, now);
    }
  }
  return most;
}

}  // namespace

absl::StatusOr<Trial> RunTrial(const Truth& truth, std::string_view method_name,
                               bool has_site_hints, uint64_t seed, int questions,
                               int most_at_once) {
  const int n = truth.host_count;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Method> method,
      MakeMethod(
          method_name, n,
          {.seed = seed,
           .site_hints = has_site_hints ? truth.cluster_of : std::vector<int>{},
           .most_at_once = most_at_once}));
  Network network(truth, seed * 1000003 + truth.seed);
  std::set<std::pair<int, int>> pairs[2];
  Events events[2] = {Events(n), Events(n)};
  Trial trial;
  ASSIGN_OR_RETURN(
      trial.totals, RunVirtually(*method, [&](const Request& request, double start_us) {
        const Answer answer = network.Measure(request);
        const bool is_wide = truth.cluster_of[request.from] != truth.cluster_of[request.to];
        pairs[is_wide].insert(std::minmax(request.from, request.to));
        for (const int host : {request.from, request.to}) {
          events[is_wide][host].emplace_back(start_us, 1);
          events[is_wide][host].emplace_back(start_us + answer.duration_us, -1);
        }
        return absl::StatusOr<Answer>(answer);
      }));
  trial.outcome = method->Finish();
  trial.score = Judge(truth, trial.outcome.tree, questions);
  trial.most_local = MostAtOnce(events[0]);
  trial.most_wide = MostAtOnce(events[1]);
  double all[2] = {0, 0};
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      all[truth.cluster_of[i] != truth.cluster_of[j]] += 1;
    }
  }
  trial.pairs_between = static_cast<long>(pairs[1].size());
  trial.between_share = all[1] > 0 ? static_cast<double>(pairs[1].size()) / all[1] : 0;
  trial.within_share = all[0] > 0 ? static_cast<double>(pairs[0].size()) / all[0] : 0;
  return trial;
}

Trial RunFullMatrix(const Truth& truth, uint64_t seed, int questions) {
  const int n = truth.host_count;
  Network network(truth, seed * 1000003 + truth.seed);
  Matrix matrix(n);
  Trial trial;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      const Answer answer =
          network.Measure({.from = j, .to = i, .sets = 3, .stop = 10, .most = 30});
      matrix.Set(i, j, answer.min_us);
      trial.totals.pings += answer.pings;
      ++trial.totals.measurements;
    }
  }
  const Tree tree = NeighbourJoining(std::move(matrix));
  const double least = truth.noise.pair_us > 1 ? 3.2 : 2.4;
  std::vector<bool> is_gone;
  for (const Link& link : tree.links) {
    is_gone.push_back(!tree.IsHost(link.u) && !tree.IsHost(link.v) && link.rtt_us < least);
  }
  trial.outcome.tree = Contracted(tree, is_gone);
  trial.score = Judge(truth, trial.outcome.tree, questions);
  return trial;
}

}  // namespace sekisho::topology::sim
