// SPDX-License-Identifier: Apache-2.0
#include "topology/place.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sekisho::topology {
namespace {

constexpr double kHuber = 2.5;
constexpr double kMoveGain = 6;

double Cost(double ratio) {
  const double distance = std::abs(ratio);
  return distance <= kHuber ? distance * distance : kHuber * (2 * distance - kHuber);
}

// The ways from a vertex to each seen host.
struct Ways {
  const Rooted& all;
  const std::vector<Sight>& sights;
  void Fill(int vertex, std::vector<double>& ways) const {
    ways.resize(sights.size());
    for (size_t i = 0; i < sights.size(); ++i) {
      ways[i] = all.Rtt(vertex, sights[i].host);
    }
  }
};

// The leaf length that fits the ways best, and what is left.
double Leftover(const std::vector<Sight>& sights, const std::vector<double>& ways, double& leaf) {
  double sum = 0;
  double weight = 0;
  for (size_t i = 0; i < sights.size(); ++i) {
    const double w = 1 / (sights[i].sigma_us * sights[i].sigma_us);
    sum += w * (sights[i].rtt_us - ways[i]);
    weight += w;
  }
  leaf = sum / weight;
  // Outliers may have pulled the mean: two rounds of lesser weight for them.
  for (int round = 0; round < 2; ++round) {
    sum = weight = 0;
    for (size_t i = 0; i < sights.size(); ++i) {
      const double ratio = std::abs(sights[i].rtt_us - ways[i] - leaf) / sights[i].sigma_us;
      const double w =
          (ratio <= kHuber ? 1 : kHuber / ratio) / (sights[i].sigma_us * sights[i].sigma_us);
      sum += w * (sights[i].rtt_us - ways[i]);
      weight += w;
    }
    leaf = sum / weight;
  }
  leaf = std::max(leaf, 0.0);
  double cost = 0;
  for (size_t i = 0; i < sights.size(); ++i) {
    cost += Cost((sights[i].rtt_us - ways[i] - leaf) / sights[i].sigma_us);
  }
  return cost;
}

}  // namespace

Place BestPlace(const Tree& tree, const Rooted& all, const std::vector<Sight>& sights,
                double link_penalty, int current) {
  const Ways way{all, sights};
  std::vector<std::vector<double>> ways(tree.vertex_count);
  Place best{.cost = std::numeric_limits<double>::max()};
  for (int vertex = tree.host_count; vertex < tree.vertex_count; ++vertex) {
    if (all.parent[vertex] < 0 && vertex != all.order[0]) {
      continue;
    }
    way.Fill(vertex, ways[vertex]);
    double leaf = 0;
    const double cost = Leftover(sights, ways[vertex], leaf);
    if (cost < best.cost) {
      const double kept = best.current_cost;
      best = {.vertex = vertex, .leaf_us = leaf, .cost = cost, .current_cost = kept};
    }
    if (vertex == current) {
      best.current_cost = cost;
    }
  }
  if (link_penalty == std::numeric_limits<double>::infinity() && best.vertex >= 0) {
    return best;
  }
  // On links: only around the best switch, and all if there is none.
  const int centre = best.vertex;
  std::vector<double> between;
  for (size_t i = 0; i < tree.links.size(); ++i) {
    const Link& link = tree.links[i];
    if (all.parent_link[link.u] != static_cast<int>(i) &&
        all.parent_link[link.v] != static_cast<int>(i)) {
      continue;
    }
    if (centre >= 0 && link.u != centre && link.v != centre) {
      continue;
    }
    for (const int end : {link.u, link.v}) {
      if (ways[end].empty()) {
        way.Fill(end, ways[end]);
      }
    }
    for (int step = 1; step < 8; ++step) {
      const double from_u = link.rtt_us * step / 8;
      between.resize(sights.size());
      for (size_t k = 0; k < sights.size(); ++k) {
        between[k] = std::min(ways[link.u][k] + from_u, ways[link.v][k] + link.rtt_us - from_u);
      }
      double leaf = 0;
      const double cost = Leftover(sights, between, leaf) + link_penalty;
      if (cost < best.cost) {
        const double kept = best.current_cost;
        best = {.link = static_cast<int>(i),
                .from_u_us = from_u,
                .leaf_us = leaf,
                .cost = cost,
                .current_cost = kept};
      }
    }
  }
  return best;
}

void Hang(Tree& tree, int host, const Place& place) {
  int at = place.vertex;
  if (at < 0) {
    at = tree.vertex_count++;
    const Link link = tree.links[place.link];
    tree.links[place.link] = {link.u, at, place.from_u_us, link.confidence};
    tree.links.push_back({at, link.v, link.rtt_us - place.from_u_us, link.confidence});
  }
  tree.links.push_back({host, at, place.leaf_us, 1});
}

int MoveMisplaced(Tree& tree, const std::vector<Observation>& observations, double spread) {
  std::vector<std::vector<Sight>> sights(tree.host_count);
  for (const Observation& o : observations) {
    sights[o.a].push_back({o.b, o.rtt_us, o.sigma_us * spread});
    sights[o.b].push_back({o.a, o.rtt_us, o.sigma_us * spread});
  }
  std::vector<int> link_of(tree.host_count, -1);
  for (size_t i = 0; i < tree.links.size(); ++i) {
    for (const int end : {tree.links[i].u, tree.links[i].v}) {
      if (tree.IsHost(end)) {
        link_of[end] = static_cast<int>(i);
      }
    }
  }
  const Rooted all = HangUp(tree, tree.vertex_count - 1);
  int moved = 0;
  for (int host = 0; host < tree.host_count; ++host) {
    if (link_of[host] < 0 || sights[host].size() < 4) {
      continue;
    }
    Link& link = tree.links[link_of[host]];
    const int current = link.u == host ? link.v : link.u;
    if (tree.IsHost(current)) {
      continue;
    }
    const Place place =
        BestPlace(tree, all, sights[host], std::numeric_limits<double>::infinity(), current);
    if (place.vertex >= 0 && place.vertex != current &&
        place.cost + kMoveGain < place.current_cost) {
      link = {host, place.vertex, place.leaf_us, 1};
      ++moved;
    }
  }
  return moved;
}

}  // namespace sekisho::topology
