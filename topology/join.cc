// SPDX-License-Identifier: Apache-2.0
#include "topology/join.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "topology/gateway.h"
#include "topology/neighbour_joining.h"

namespace sekisho::topology {
namespace {

constexpr int kGatewayRounds = 3;
constexpr double kCoreZ = 2.2;  // a link of the core must be so many times its error
constexpr double kStubZ = 3.0;  // and so a site's link to the core
constexpr double kPrior = 6;    // measurements that the assumed noise counts for

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// Round trips between two sites less the ways inside them: mean and its error, without outliers.
struct Distance {
  double rtt_us = 0;
  double error_us = 0;
  double spread = 1;
};

Distance Measure(const Crossing& crossing, const GatewaySearch& left, const Gateway& left_gateway,
                 const GatewaySearch& right, const Gateway& right_gateway) {
  std::vector<double> rest;
  for (const Observation& o : crossing.observations) {
    rest.push_back(o.rtt_us - left.Way(o.a, left_gateway) - right.Way(o.b, right_gateway));
  }
  const double middle = Median(rest);
  std::vector<double> ratios;
  for (size_t i = 0; i < rest.size(); ++i) {
    ratios.push_back(std::abs(rest[i] - middle) / crossing.observations[i].sigma_us);
  }
  const double n = static_cast<double>(rest.size());
  Distance distance;
  const double seen = 1.4826 * Median(ratios);
  distance.spread = std::clamp(std::sqrt((seen * seen * n + kPrior) / (n + kPrior)), 0.3, 8.0);
  double sum = 0;
  double weight = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    const double sigma = crossing.observations[i].sigma_us * distance.spread;
    const double ratio = std::abs(rest[i] - middle) / sigma;
    const double w = (ratio <= 2 ? 1 : 4 / (ratio * ratio)) / (sigma * sigma);
    sum += w * rest[i];
    weight += w;
  }
  distance.rtt_us = std::max(sum / weight, 0.1);
  distance.error_us = 1 / std::sqrt(weight);
  return distance;
}

// Adds a site's tree, and the vertex of its gateway.
int AddSite(const SiteTree& site, const Gateway& gateway, Tree& whole) {
  const int shift = whole.vertex_count - site.tree.host_count;
  const auto name = [&](int v) { return v < site.tree.host_count ? site.hosts[v] : v + shift; };
  whole.vertex_count += site.tree.vertex_count - site.tree.host_count;
  int at = gateway.vertex >= 0 ? name(gateway.vertex) : -1;
  for (size_t i = 0; i < site.tree.links.size(); ++i) {
    const Link& link = site.tree.links[i];
    const int u = name(link.u);
    const int v = name(link.v);
    if (gateway.link == static_cast<int>(i)) {
      at = whole.vertex_count++;
      whole.links.push_back({u, at, gateway.from_u_us, link.confidence});
      whole.links.push_back({at, v, link.rtt_us - gateway.from_u_us, link.confidence});
    } else {
      whole.links.push_back({u, v, link.rtt_us, link.confidence});
    }
  }
  return at;
}

// The tree between the gateways, vertex i that of site i; links that the data do not support are
// gone, also those that lead to a gateway: then the gateway is a switch of the core.
Tree CoreTree(int sites, const std::vector<Observation>& distances, double& weakest) {
  Matrix matrix(sites);
  for (const Observation& o : distances) {
    matrix.Set(o.a, o.b, o.rtt_us);
  }
  Tree core = NeighbourJoining(std::move(matrix));
  if (sites == 2) {
    return core;
  }
  Fit fit(std::move(core), distances);
  fit.Solve(0);
  fit.Contract({.floor_us = 0.3, .z = kCoreZ});
  core = fit.Result();
  std::vector<bool> is_gone(core.links.size(), false);
  double stub_error = 0;
  for (const Observation& o : distances) {
    stub_error = std::max(stub_error, o.sigma_us);
  }
  std::vector<bool> is_joined(core.vertex_count, false);
  for (size_t i = 0; i < core.links.size(); ++i) {
    const Link& link = core.links[i];
    const bool is_stub = core.IsHost(link.u) || core.IsHost(link.v);
    const int inner = core.IsHost(link.u) ? link.v : link.u;
    if (!is_stub) {
      const double quantile = link.confidence;
      weakest = std::min(weakest, quantile);
    } else if (link.rtt_us < std::max(0.5, kStubZ * stub_error / 2) && !is_joined[inner]) {
      is_gone[i] = true;
      is_joined[inner] = true;
    }
  }
  return Contracted(core, is_gone);
}

}  // namespace

Joined JoinSites(int host_count, const std::vector<SiteTree>& sites,
                 const std::vector<Crossing>& crossings) {
  const int count = static_cast<int>(sites.size());
  Joined joined;
  std::vector<GatewaySearch> searches;
  for (const SiteTree& site : sites) {
    searches.emplace_back(site.tree);
    joined.gateways.push_back(searches.back().Middle());
  }
  std::vector<double> spread(crossings.size(), 1);
  for (int round = 0; round < kGatewayRounds; ++round) {
    for (int site = 0; site < count; ++site) {
      std::vector<FarSight> sights;
      for (size_t c = 0; c < crossings.size(); ++c) {
        const Crossing& crossing = crossings[c];
        const bool is_left = crossing.left == site;
        if (!is_left && crossing.right != site) {
          continue;
        }
        const int far = is_left ? crossing.right : crossing.left;
        for (const Observation& o : crossing.observations) {
          sights.push_back({is_left ? o.a : o.b, far,
                            o.rtt_us - searches[far].Way(is_left ? o.b : o.a, joined.gateways[far]),
                            o.sigma_us * spread[c]});
        }
      }
      if (!sights.empty()) {
        joined.gateways[site] = searches[site].Best(sights, count);
      }
    }
    for (size_t c = 0; c < crossings.size(); ++c) {
      const Crossing& crossing = crossings[c];
      if (!crossing.observations.empty()) {
        spread[c] = Measure(crossing, searches[crossing.left], joined.gateways[crossing.left],
                            searches[crossing.right], joined.gateways[crossing.right])
                        .spread;
      }
    }
  }
  std::vector<Observation> distances;
  joined.nearest_us.assign(count, 1e18);
  for (const Crossing& crossing : crossings) {
    if (crossing.observations.empty()) {
      continue;
    }
    const Distance distance =
        Measure(crossing, searches[crossing.left], joined.gateways[crossing.left],
                searches[crossing.right], joined.gateways[crossing.right]);
    distances.push_back(
        {crossing.left, crossing.right, distance.rtt_us, std::max(distance.error_us, 1e-3)});
    for (const int site : {crossing.left, crossing.right}) {
      joined.nearest_us[site] = std::min(joined.nearest_us[site], distance.rtt_us);
    }
  }
  joined.tree = {.host_count = host_count, .vertex_count = host_count, .links = {}};
  std::vector<int> gateway_of;
  for (int site = 0; site < count; ++site) {
    gateway_of.push_back(AddSite(sites[site], joined.gateways[site], joined.tree));
  }
  if (count > 1) {
    const Tree core = CoreTree(count, distances, joined.weakest);
    const int shift = joined.tree.vertex_count - count;
    joined.tree.vertex_count += core.vertex_count - count;
    for (Link link : core.links) {
      for (int* end : {&link.u, &link.v}) {
        *end = *end < count ? gateway_of[*end] : *end + shift;
      }
      joined.tree.links.push_back(link);
    }
  }
  joined.tree = Simplified(joined.tree);
  return joined;
}

}  // namespace sekisho::topology
