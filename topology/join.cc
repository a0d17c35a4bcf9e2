// SPDX-License-Identifier: Apache-2.0
#include "topology/join.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "topology/gateway.h"
#include "topology/median.h"
#include "topology/neighbour_joining.h"

namespace sekisho::topology {
namespace {

constexpr int kGatewayRounds = 3;
constexpr double kCoreZ = 2.0;             // a link of the core must be so many times its error ...
constexpr double kCoreBeyondChance = 0.8;  // ... and this much more than the best of all by chance
constexpr double kStubZ = 3.0;             // and so a site's link to the core
constexpr double kPrior = 6;               // measurements that the assumed noise counts for
constexpr double kSecondGateway = 10;      // what a second gateway must explain, squared deviations

struct Distance {
  double rtt_us = 0;
  double error_us = 0;
  double spread = 1;
};

class Joiner {
 public:
  Joiner(const std::vector<SiteTree>& sites, const std::vector<Crossing>& crossings);

  Joined Run(int host_count);

 private:
  int count() const { return static_cast<int>(sites_.size()); }
  std::vector<FarSight> Sights(int site, const std::vector<bool>& is_wanted) const;
  Distance Measure(const Crossing& crossing) const;
  double Settle();
  void FindGateways();
  std::vector<Observation> Distances(const std::vector<int>& gateway_count) const;
  Tree Core(const std::vector<Observation>& distances) const;
  void SplitGateways(const Tree& core);
  int AddSite(int site, Tree& whole, std::map<std::pair<int, double>, int>& made) const;

  const std::vector<SiteTree>& sites_;
  const std::vector<Crossing>& crossings_;
  const bool is_relayed_;  // all that crosses
  std::vector<GatewaySearch> searches_;
  std::vector<std::vector<Gateway>> gateway_;  // of a site, towards another
  std::vector<Gateway> best_;
  std::vector<double> spread_;  // of each crossing
  std::vector<bool> is_split_;
  std::vector<std::vector<int>> branch_;  // of a split site, towards another
};

Joiner::Joiner(const std::vector<SiteTree>& sites, const std::vector<Crossing>& crossings)
    : sites_(sites),
      crossings_(crossings),
      is_relayed_(std::any_of(crossings.begin(), crossings.end(),
                              [](const Crossing& one) { return one.is_relayed; })),
      spread_(crossings.size(), 1) {
  for (const SiteTree& site : sites) {
    searches_.emplace_back(site.tree);
    best_.push_back(is_relayed_ ? searches_.back().Assumed() : searches_.back().Middle());
    gateway_.emplace_back(sites.size(), best_.back());
  }
  is_split_.assign(sites.size(), false);
  branch_.assign(sites.size(), std::vector<int>(sites.size(), 0));
}

// What a site has seen of those far sites that are wanted.
std::vector<FarSight> Joiner::Sights(int site, const std::vector<bool>& is_wanted) const {
  std::vector<FarSight> sights;
  for (size_t c = 0; c < crossings_.size(); ++c) {
    const Crossing& crossing = crossings_[c];
    const bool is_left = crossing.left == site;
    const int far = is_left ? crossing.right : crossing.left;
    if ((!is_left && crossing.right != site) || !is_wanted[far]) {
      continue;
    }
    for (const Observation& o : crossing.observations) {
      const int there = is_left ? o.b : o.a;
      sights.push_back({is_left ? o.a : o.b, far,
                        o.rtt_us - searches_[far].Way(there, gateway_[far][site]),
                        o.sigma_us * spread_[c]});
    }
  }
  return sights;
}

// Round trip between two gateways: measured ones less the ways inside the sites, without outliers.
Distance Joiner::Measure(const Crossing& crossing) const {
  const int left = crossing.left;
  const int right = crossing.right;
  std::vector<double> rest;
  for (const Observation& o : crossing.observations) {
    rest.push_back(o.rtt_us - searches_[left].Way(o.a, gateway_[left][right]) -
                   searches_[right].Way(o.b, gateway_[right][left]));
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

// From where they are, each in turn to where it fits best with the others as they are.  How badly
// all fits then, by the noise as it was assumed.
double Joiner::Settle() {
  const std::vector<bool> all(sites_.size(), true);
  spread_.assign(crossings_.size(), 1);
  for (int round = 0; round < kGatewayRounds; ++round) {
    for (int site = 0; site < count(); ++site) {
      const std::vector<FarSight> sights = Sights(site, all);
      if (!sights.empty()) {
        best_[site] = searches_[site].Best(sights, count());
        gateway_[site].assign(sites_.size(), best_[site]);
      }
    }
    for (size_t c = 0; c < crossings_.size(); ++c) {
      if (!crossings_[c].observations.empty()) {
        spread_[c] = Measure(crossings_[c]).spread;
      }
    }
  }
  const std::vector<double> spread = std::exchange(spread_, std::vector<double>(spread_.size(), 1));
  double cost = 0;
  for (int site = 0; site < count(); ++site) {
    const std::vector<FarSight> sights = Sights(site, all);
    cost += sights.empty() ? 0 : searches_[site].Best(sights, count()).cost;
  }
  spread_ = spread;
  return cost;
}

// Two gateways may hold each other in wrong places, where neither can leave alone: so the better of
// two ways to begin.
void Joiner::FindGateways() {
  if (is_relayed_) {
    return;  // too coarse to tell
  }
  const double cost = Settle();
  const auto found = std::tuple(best_, gateway_, spread_);
  for (int site = 0; site < count(); ++site) {
    best_[site] = searches_[site].Centre();
    gateway_[site].assign(sites_.size(), best_[site]);
  }
  if (Settle() >= cost) {
    std::tie(best_, gateway_, spread_) = found;
  }
}

std::vector<Observation> Joiner::Distances(const std::vector<int>& skip) const {
  std::vector<Observation> distances;
  for (size_t c = 0; c < crossings_.size(); ++c) {
    if (!crossings_[c].observations.empty() && (skip.empty() || skip[c] == 0)) {
      const Distance distance = Measure(crossings_[c]);
      distances.push_back({crossings_[c].left, crossings_[c].right, distance.rtt_us,
                           std::max(distance.error_us, 1e-3)});
    }
  }
  return distances;
}

// The tree between the gateways, vertex i that of site i; links that the data do not support are
// gone, also those that lead to a gateway: then the gateway is a switch of the core.
Tree Joiner::Core(const std::vector<Observation>& distances) const {
  Matrix matrix(count());
  double largest_error = 0;
  for (const Observation& o : distances) {
    matrix.Set(o.a, o.b, o.rtt_us);
    largest_error = std::max(largest_error, o.sigma_us);
  }
  Tree core = NeighbourJoining(std::move(matrix));
  if (count() == 2) {
    return core;
  }
  Fit fit(std::move(core), distances);
  fit.Solve(0);
  fit.Contract({.floor_us = 0.3, .z = kCoreZ, .beyond_chance = kCoreBeyondChance});
  core = fit.Result();
  std::vector<bool> is_gone(core.links.size(), false);
  std::vector<bool> is_joined(core.vertex_count, false);
  for (size_t i = 0; i < core.links.size(); ++i) {
    const Link& link = core.links[i];
    const int inner = core.IsHost(link.u) ? link.v : link.u;
    if ((core.IsHost(link.u) || core.IsHost(link.v)) && !is_joined[inner] &&
        link.rtt_us < std::max(0.5, kStubZ * largest_error / 2)) {
      is_gone[i] = true;
      is_joined[inner] = true;
    }
  }
  return Contracted(core, is_gone);
}

// A site between others may let each of them in elsewhere.
void Joiner::SplitGateways(const Tree& core) {
  for (int site = 0; site < count(); ++site) {
    const Rooted rooted = HangUp(core, site);
    std::vector<int> branch(core.vertex_count, -1);
    int branches = 0;
    for (size_t i = 1; i < rooted.order.size(); ++i) {
      const int vertex = rooted.order[i];
      branch[vertex] = rooted.parent[vertex] == site ? branches++ : branch[rooted.parent[vertex]];
    }
    if (branches < 2) {
      continue;
    }
    std::vector<Gateway> of_branch;
    double cost = kSecondGateway * (branches - 1);
    for (int b = 0; b < branches; ++b) {
      std::vector<bool> is_wanted(sites_.size(), false);
      for (int far = 0; far < count(); ++far) {
        is_wanted[far] = branch[far] == b;
      }
      const std::vector<FarSight> sights = Sights(site, is_wanted);
      of_branch.push_back(sights.empty() ? best_[site] : searches_[site].Best(sights, count()));
      cost += of_branch.back().cost;
    }
    if (cost < best_[site].cost) {
      is_split_[site] = true;
      for (int far = 0; far < count(); ++far) {
        if (far != site) {
          branch_[site][far] = branch[far];
          gateway_[site][far] = of_branch[branch[far]];
        }
      }
    }
  }
}

// Adds a site's tree with the switches that gateways on links need: `made` names them all.
int Joiner::AddSite(int site, Tree& whole, std::map<std::pair<int, double>, int>& made) const {
  const SiteTree& own = sites_[site];
  const int hosts = own.tree.host_count;
  const int shift = whole.vertex_count - hosts;
  const auto name = [&](int v) { return v < hosts ? own.hosts[v] : v + shift; };
  whole.vertex_count += own.tree.vertex_count - hosts;
  for (const Gateway& gateway : gateway_[site]) {
    if (gateway.link >= 0) {
      made.try_emplace({gateway.link, gateway.from_u_us}, -1);
    }
  }
  for (size_t i = 0; i < own.tree.links.size(); ++i) {
    const Link& link = own.tree.links[i];
    int from = name(link.u);
    double done_us = 0;
    for (auto next = made.lower_bound({static_cast<int>(i), 0});
         next != made.end() && next->first.first == static_cast<int>(i); ++next) {
      next->second = whole.vertex_count++;
      whole.links.push_back({from, next->second, next->first.second - done_us, link.confidence});
      from = next->second;
      done_us = next->first.second;
    }
    whole.links.push_back({from, name(link.v), link.rtt_us - done_us, link.confidence});
  }
  return shift;
}

Joined Joiner::Run(int host_count) {
  FindGateways();
  Tree core{.host_count = count(), .vertex_count = count(), .links = {}};
  if (count() > 1) {
    core = Core(Distances({}));
    SplitGateways(core);
    // Lengths again: distances across a site with several gateways say nothing of one of them.
    if (std::find(is_split_.begin(), is_split_.end(), true) != is_split_.end()) {
      std::vector<int> skip(crossings_.size(), 0);
      for (size_t c = 0; c < crossings_.size(); ++c) {
        for (int site = 0; site < count(); ++site) {
          const bool is_end = site == crossings_[c].left || site == crossings_[c].right;
          skip[c] += is_split_[site] && !is_end &&
                             branch_[site][crossings_[c].left] != branch_[site][crossings_[c].right]
                         ? 1
                         : 0;
        }
      }
      const std::vector<Observation> distances = Distances(skip);
      Fit fit(core, distances);
      fit.Solve(0);
      const std::vector<Link> confident = core.links;
      core = fit.tree();
      for (size_t i = 0; i < core.links.size(); ++i) {
        core.links[i].rtt_us = std::max(core.links[i].rtt_us, 0.1);
        core.links[i].confidence = confident[i].confidence;
      }
    }
  }
  Joined joined{.tree = {.host_count = host_count, .vertex_count = host_count, .links = {}},
                .gateways = best_};
  // Each site, and where the core's links end at it.
  std::vector<int> shift;
  std::vector<std::map<std::pair<int, double>, int>> made(sites_.size());
  for (int site = 0; site < count(); ++site) {
    shift.push_back(AddSite(site, joined.tree, made[site]));
  }
  const int core_shift = joined.tree.vertex_count - count();
  joined.tree.vertex_count += core.vertex_count - count();
  for (const Link& link : core.links) {
    Link placed = link;
    placed.is_relayed = is_relayed_;
    for (const auto& [end, other, to] :
         {std::tuple(link.u, link.v, &placed.u), {link.v, link.u, &placed.v}}) {
      if (end >= count()) {
        *to = end + core_shift;
        continue;
      }
      // Any far site beyond the other end of this link shows which gateway it is.
      int far = other;
      if (other >= count()) {
        const Rooted rooted = HangUp(core, end);
        for (int site = 0; site < count(); ++site) {
          if (site != end && rooted.Ancestor(site, other) == other) {
            far = site;
          }
        }
      }
      const Gateway& gateway = far < count() ? gateway_[end][far] : best_[end];
      *to = gateway.vertex >= 0
                ? (gateway.vertex < sites_[end].tree.host_count ? sites_[end].hosts[gateway.vertex]
                                                                : gateway.vertex + shift[end])
                : made[end].at({gateway.link, gateway.from_u_us});
    }
    joined.tree.links.push_back(placed);
  }
  joined.tree = Simplified(joined.tree);
  return joined;
}

}  // namespace

Joined JoinSites(int host_count, const std::vector<SiteTree>& sites,
                 const std::vector<Crossing>& crossings) {
  return Joiner(sites, crossings).Run(host_count);
}

}  // namespace sekisho::topology
