// SPDX-License-Identifier: Apache-2.0
#include "topology/gateway.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sekisho::topology {
namespace {

constexpr double kHuber = 2.5;
constexpr double kOffCentre = 1.0;    // a link further from the middle of the site
constexpr double kOnLink = 5.0;       // needs a switch that no host of the site shows
constexpr double kOnHostLink = 12.0;  // between a host and its switch
constexpr int kSteps = 6;

double HuberCost(double ratio) {
  const double distance = std::abs(ratio);
  return distance <= kHuber ? distance * distance : kHuber * (2 * distance - kHuber);
}

}  // namespace

GatewaySearch::GatewaySearch(const Tree& tree) : tree_(tree) {
  // Links to the farthest host, of every vertex: sites mostly hang together at their middle.
  std::vector<int> eccentricity(tree.vertex_count, 0);
  for (int host = 0; host < tree.host_count; ++host) {
    from_host_.push_back(HangUp(tree, host));
    for (const int vertex : from_host_.back().order) {
      eccentricity[vertex] = std::max(eccentricity[vertex], from_host_.back().level[vertex]);
    }
  }
  int least = std::numeric_limits<int>::max();
  for (int vertex = tree.host_count; vertex < tree.vertex_count; ++vertex) {
    least = std::min(least, eccentricity[vertex]);
  }
  if (tree.links.empty()) {  // one host, or none that answered
    candidates_.push_back({{.vertex = 0}, 0});
  }
  for (int vertex = tree.host_count; vertex < tree.vertex_count; ++vertex) {
    candidates_.push_back({{.vertex = vertex}, kOffCentre * (eccentricity[vertex] - least)});
  }
  for (size_t i = 0; i < tree.links.size(); ++i) {
    const Link& link = tree.links[i];
    const bool is_host_link = tree.IsHost(link.u) || tree.IsHost(link.v);
    const double off = std::min(eccentricity[link.u], eccentricity[link.v]) - least + 0.5;
    const double penalty = is_host_link ? (tree.host_count == 2 ? 0 : kOnHostLink)
                                        : kOnLink + kOffCentre * std::max(0.0, off - 1);
    for (int step = 1; step < kSteps; ++step) {
      candidates_.push_back(
          {{.link = static_cast<int>(i), .from_u_us = link.rtt_us * step / kSteps}, penalty});
    }
  }
}

double GatewaySearch::Way(int host, const Gateway& gateway) const {
  const Rooted& from = from_host_[host];
  if (gateway.vertex >= 0) {
    return from.depth_us[gateway.vertex];
  }
  const Link& link = tree_.links[gateway.link];
  return std::min(from.depth_us[link.u] + gateway.from_u_us,
                  from.depth_us[link.v] + link.rtt_us - gateway.from_u_us);
}

double GatewaySearch::Cost(const Candidate& candidate, const std::vector<FarSight>& sights,
                           int groups) const {
  // The way beyond the gateway: of each far site by itself, robust against a few outliers.
  std::vector<double> mean(groups, 0);
  std::vector<double> rest(sights.size());
  for (size_t i = 0; i < sights.size(); ++i) {
    rest[i] = sights[i].rtt_us - Way(sights[i].host, candidate.place);
  }
  for (int round = 0; round < 3; ++round) {
    std::vector<double> sum(groups, 0);
    std::vector<double> weight(groups, 0);
    for (size_t i = 0; i < sights.size(); ++i) {
      const FarSight& sight = sights[i];
      const double ratio = std::abs(rest[i] - mean[sight.group]) / sight.sigma_us;
      const double w =
          (round == 0 || ratio <= kHuber ? 1 : kHuber / ratio) / (sight.sigma_us * sight.sigma_us);
      sum[sight.group] += w * rest[i];
      weight[sight.group] += w;
    }
    for (int group = 0; group < groups; ++group) {
      mean[group] = weight[group] > 0 ? sum[group] / weight[group] : 0;
    }
  }
  double cost = candidate.penalty;
  for (size_t i = 0; i < sights.size(); ++i) {
    cost += HuberCost((rest[i] - mean[sights[i].group]) / sights[i].sigma_us);
  }
  return cost;
}

Gateway GatewaySearch::Middle() const {
  return std::min_element(
             candidates_.begin(), candidates_.end(),
             [](const Candidate& a, const Candidate& b) { return a.penalty < b.penalty; })
      ->place;
}

Gateway GatewaySearch::Centre() const {
  const auto farthest = [this](const Candidate& candidate) {
    double most = 0;
    for (int host = 0; host < tree_.host_count; ++host) {
      most = std::max(most, Way(host, candidate.place));
    }
    return most;
  };
  Gateway centre;
  double least = std::numeric_limits<double>::max();
  for (const Candidate& candidate : candidates_) {
    if (const double most = farthest(candidate); most < least) {
      least = most;
      centre = candidate.place;
    }
  }
  return centre;
}

Gateway GatewaySearch::Best(const std::vector<FarSight>& sights, int groups) const {
  std::vector<double> costs;
  for (const Candidate& candidate : candidates_) {
    costs.push_back(Cost(candidate, sights, groups));
  }
  const size_t best = std::min_element(costs.begin(), costs.end()) - costs.begin();
  Gateway gateway = candidates_[best].place;
  gateway.cost = costs[best];
  gateway.margin = 1e9;
  for (size_t i = 0; i < costs.size(); ++i) {
    const Gateway& other = candidates_[i].place;
    if (other.vertex != gateway.vertex || other.link != gateway.link) {
      gateway.margin = std::min(gateway.margin, costs[i] - costs[best]);
    }
  }
  return gateway;
}

}  // namespace sekisho::topology
