// SPDX-License-Identifier: Apache-2.0
#include "topology/build.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "topology/neighbour_joining.h"
#include "topology/place.h"

namespace sekisho::topology {
namespace {

constexpr int kMostBranches = 400;  // of one switch, for neighbour joining
constexpr double kBranch =
    1000;  // length that every branch has in its matrix: all but its differences

double MedianSigma(const std::vector<Observation>& observations) {
  std::vector<double> sigmas;
  for (const Observation& o : observations) {
    sigmas.push_back(o.sigma_us);
  }
  if (sigmas.empty()) {
    return 1;
  }
  std::nth_element(sigmas.begin(), sigmas.begin() + static_cast<long>(sigmas.size() / 2),
                   sigmas.end());
  return sigmas[sigmas.size() / 2];
}

Tree FitAndContract(Tree tree, const std::vector<Observation>& observations,
                    const BuildLimits& limits, BuildReport* report) {
  Fit fit(std::move(tree), observations);
  fit.Solve();
  const double noise = fit.Spread() * MedianSigma(observations);
  Fit::Limits contract{.floor_us = std::max(limits.floor_us, limits.floor_share * noise),
                       .z = limits.z,
                       .beyond_chance = limits.beyond_chance};
  fit.Contract(contract);
  // One switch is what most hosts hang at if nothing else is sure: the first more needs more than
  // those that come with it.
  contract.beyond_chance = limits.first_beyond_chance;
  if (!fit.HasSureLink(contract)) {
    fit.Contract(contract);
  }
  fit.Solve(1);
  if (report != nullptr) {
    report->spread = fit.Spread();
    report->residuals = fit.Residuals();
  }
  return fit.Result();
}

// The branches at `vertex` as seen by the hosts behind them: branch of each vertex, -1 at `vertex`.
int Branches(const Rooted& rooted, std::vector<int>& branch) {
  branch.assign(rooted.parent.size(), -1);
  int count = 0;
  for (size_t i = 1; i < rooted.order.size(); ++i) {
    const int vertex = rooted.order[i];
    const int parent = rooted.parent[vertex];
    branch[vertex] = branch[parent] < 0 ? count++ : branch[parent];
  }
  return count;
}

// Splits one switch into several by neighbour joining of its branches.
void ResolveStar(Tree& tree, int vertex, const std::vector<Observation>& observations) {
  const Rooted rooted = HangUp(tree, vertex);
  std::vector<int> branch;
  const int count = Branches(rooted, branch);
  if (count < 4 || count > kMostBranches) {
    return;
  }
  Matrix sums(count);
  Matrix weights(count);
  std::fill(sums.cells.begin(), sums.cells.end(), 0);
  std::fill(weights.cells.begin(), weights.cells.end(), 0);
  for (const Observation& o : observations) {
    const int a = branch[o.a];
    const int b = branch[o.b];
    if (a >= 0 && b >= 0 && a != b) {
      const double w = 1 / (o.sigma_us * o.sigma_us);
      const double beyond = std::clamp(o.rtt_us - rooted.depth_us[o.a] - rooted.depth_us[o.b],
                                       -30.0 * o.sigma_us, 30.0 * o.sigma_us);
      sums.Set(a, b, sums.At(a, b) + w * beyond);
      weights.Set(a, b, weights.At(a, b) + w);
    }
  }
  Matrix matrix(count);
  for (int a = 0; a < count; ++a) {
    for (int b = 0; b < a; ++b) {
      const double weight = weights.At(a, b);
      matrix.Set(a, b, 2 * kBranch + (weight > 0 ? sums.At(a, b) / weight : 0));
    }
  }
  const Tree joined = NeighbourJoining(matrix);
  // The branches' links keep their lengths, moved to the switches that were found.
  std::vector<int> name(joined.vertex_count, -1);
  name[joined.vertex_count - 1] = vertex;
  const auto vertex_of = [&](int v) {
    if (name[v] < 0) {
      name[v] = tree.vertex_count++;
    }
    return name[v];
  };
  std::vector<int> link_of(count, -1);
  for (size_t i = 1; i < rooted.order.size(); ++i) {
    const int child = rooted.order[i];
    if (rooted.parent[child] == vertex) {
      link_of[branch[child]] = rooted.parent_link[child];
    }
  }
  for (const Link& link : joined.links) {
    const int low = std::min(link.u, link.v);
    const int high = std::max(link.u, link.v);
    if (low < count) {
      Link& old = tree.links[link_of[low]];
      (old.u == vertex ? old.u : old.v) = vertex_of(high);
    } else {
      tree.links.push_back({vertex_of(low), vertex_of(high), link.rtt_us, 1});
    }
  }
}

}  // namespace

Tree Improve(Tree tree, const std::vector<Observation>& observations, const BuildLimits& limits,
             BuildReport* report) {
  BuildReport own;
  report = report == nullptr ? &own : report;
  for (int round = 0; round < 3; ++round) {
    const int before = tree.vertex_count;
    for (int vertex = tree.host_count; vertex < before; ++vertex) {
      ResolveStar(tree, vertex, observations);
    }
    tree = FitAndContract(std::move(tree), observations, limits, report);
    const int moved = MoveMisplaced(tree, observations, std::max(report->spread, 1e-3));
    if (moved > 0) {
      tree = FitAndContract(Simplified(tree), observations, limits, report);
    }
    if (moved == 0 && round > 0) {
      break;
    }
  }
  return tree;
}

Tree BuildTree(int n, const std::vector<Observation>& observations, const BuildLimits& limits,
               BuildReport* report) {
  Matrix matrix(n);
  for (const Observation& o : observations) {
    matrix.Set(o.a, o.b, o.rtt_us);
  }
  Tree tree = NeighbourJoining(std::move(matrix));
  if (n < 3) {
    return tree;
  }
  tree = FitAndContract(std::move(tree), observations, limits, report);
  return Improve(std::move(tree), observations, limits, report);
}

}  // namespace sekisho::topology
