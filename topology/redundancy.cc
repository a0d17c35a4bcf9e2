// SPDX-License-Identifier: Apache-2.0
#include "topology/redundancy.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace sekisho::topology {
namespace {

constexpr long kLeastPairs = 12;    // of hosts, between two branches
constexpr int kLeastCrossings = 6;  // pairs of branches
constexpr double kMost = 3;         // an outlier counts as that, of the usual deviation
constexpr double kSame = 1.4;       // hosts whose noise differs by less are alike
constexpr double kUsualPairs = 10;  // that a host's own noise is taken for the usual one's

// How far each measurement is from the tree, of what its two hosts usually are.
std::vector<double> Deviations(const Rooted& rooted, const std::vector<Observation>& observations,
                               int hosts) {
  std::vector<double> deviations;
  double mean = 0;
  for (const Observation& o : observations) {
    deviations.push_back(std::abs(o.rtt_us - rooted.Rtt(o.a, o.b)) / o.sigma_us);
    mean += deviations.back() / static_cast<double>(observations.size());
  }
  std::vector<double> sum(hosts, kUsualPairs * mean);
  std::vector<double> count(hosts, kUsualPairs);
  for (size_t i = 0; i < observations.size(); ++i) {
    const double one = std::min(deviations[i], kMost * mean);
    for (const int host : {observations[i].a, observations[i].b}) {
      sum[host] += one;
      count[host] += 1;
    }
  }
  for (size_t i = 0; i < observations.size(); ++i) {
    const int a = observations[i].a;
    const int b = observations[i].b;
    const double own = std::sqrt(sum[a] / count[a] * sum[b] / count[b]);
    const double usual = own > mean * kSame || own < mean / kSame ? own : mean;
    deviations[i] = usual > 0 ? std::min(deviations[i] / usual, kMost) : 0;
  }
  return deviations;
}

struct Crossing {
  long pairs = 0;
  double sum = 0;
};

}  // namespace

std::vector<SeveralWays> FindSeveralWays(const Tree& tree,
                                         const std::vector<Observation>& observations,
                                         double least_deviation) {
  if (observations.empty()) {
    return {};
  }
  const Rooted rooted = HangUp(tree, observations[0].a);
  const std::vector<double> deviations = Deviations(rooted, observations, tree.host_count);

  // What passes each switch from one other to another.
  std::map<std::tuple<int, int, int>, Crossing> crossings;
  std::map<int, std::pair<double, double>> moments;  // of all that passes a switch
  std::vector<int> way;
  for (size_t i = 0; i < observations.size(); ++i) {
    const int top = rooted.Ancestor(observations[i].a, observations[i].b);
    way.clear();
    for (int vertex = observations[i].a; vertex != top; vertex = rooted.parent[vertex]) {
      way.push_back(vertex);
    }
    way.push_back(top);
    const size_t up = way.size();
    for (int vertex = observations[i].b; vertex != top; vertex = rooted.parent[vertex]) {
      way.push_back(vertex);
    }
    std::reverse(way.begin() + static_cast<long>(up), way.end());
    for (size_t k = 2; k + 2 < way.size(); ++k) {
      const auto [low, high] = std::minmax(way[k - 1], way[k + 1]);
      Crossing& crossing = crossings[{way[k], low, high}];
      ++crossing.pairs;
      crossing.sum += deviations[i];
      auto& [sum, squares] = moments[way[k]];
      sum += deviations[i];
      squares += deviations[i] * deviations[i];
    }
  }

  // Do its crossings differ in how much their pairs deviate?
  std::vector<SeveralWays> found;
  for (auto first = crossings.begin(); first != crossings.end();) {
    const int vertex = std::get<0>(first->first);
    auto last = first;
    long pairs = 0;
    for (; last != crossings.end() && std::get<0>(last->first) == vertex; ++last) {
      pairs += last->second.pairs;
    }
    const auto& [sum, squares] = moments[vertex];
    const double n = static_cast<double>(pairs);
    const double mean = sum / n;
    const double variance = squares / n - mean * mean;
    double chi = 0;
    int freedom = -1;
    for (; first != last; ++first) {
      const Crossing& crossing = first->second;
      if (crossing.pairs >= kLeastPairs) {
        const double own = static_cast<double>(crossing.pairs);
        const double off = crossing.sum / own - mean;
        chi += variance > 0 ? own * off * off / variance : 0;
        ++freedom;
      }
    }
    if (freedom + 1 >= kLeastCrossings) {
      const double deviation = (chi - freedom) / std::sqrt(2.0 * freedom);
      if (deviation >= least_deviation) {
        found.push_back({vertex, deviation});
      }
    }
  }
  return found;
}

std::vector<SeveralWays> Renumbered(const std::vector<SeveralWays>& ways, const Tree& before,
                                    const Tree& after) {
  std::vector<bool> is_there(after.host_count, false);
  for (const Link& link : after.links) {
    for (const int end : {link.u, link.v}) {
      if (after.IsHost(end)) {
        is_there[end] = true;
      }
    }
  }
  std::vector<SeveralWays> renumbered;
  for (const SeveralWays& one : ways) {
    // A host in each of three branches: the switch is where they meet.
    const Rooted rooted = HangUp(before, one.vertex);
    std::map<int, int> host_of;
    for (size_t i = 1; i < rooted.order.size(); ++i) {
      int branch = rooted.order[i];
      if (!before.IsHost(branch) || !is_there[branch]) {
        continue;
      }
      while (rooted.parent[branch] != one.vertex) {
        branch = rooted.parent[branch];
      }
      host_of.emplace(branch, rooted.order[i]);
    }
    if (host_of.size() >= 3) {
      const int first = host_of.begin()->second;
      const int second = std::next(host_of.begin())->second;
      const int third = std::next(host_of.begin(), 2)->second;
      renumbered.push_back({HangUp(after, first).Ancestor(second, third), one.deviation});
    }
  }
  return renumbered;
}

}  // namespace sekisho::topology
