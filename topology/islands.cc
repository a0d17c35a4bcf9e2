// SPDX-License-Identifier: Apache-2.0
#include "topology/islands.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sekisho::topology {
namespace {

// For each of `count` sites or islands the number of the part that crossings make it belong to.
std::vector<int> PartsOf(size_t count, const std::vector<Crossing>& crossings) {
  std::vector<int> part(count);
  std::iota(part.begin(), part.end(), 0);
  for (const Crossing& crossing : crossings) {
    if (!crossing.observations.empty()) {
      const int gone = part[crossing.right];
      const int joined = part[crossing.left];
      std::replace(part.begin(), part.end(), gone, joined);
    }
  }
  return part;
}

// Those of one part, and what crosses between them.
struct Part {
  std::vector<int> members;
  std::vector<SiteTree> trees;
  std::vector<Crossing> crossings;
};

Part Select(int wanted, const std::vector<int>& part_of, const std::vector<SiteTree>& trees,
            const std::vector<Crossing>& crossings) {
  Part part;
  std::vector<int> position(trees.size(), -1);
  for (size_t i = 0; i < trees.size(); ++i) {
    if (part_of[i] == wanted) {
      position[i] = static_cast<int>(part.members.size());
      part.members.push_back(static_cast<int>(i));
      part.trees.push_back(trees[i]);
    }
  }
  for (const Crossing& crossing : crossings) {
    if (part_of[crossing.left] == wanted && part_of[crossing.right] == wanted) {
      part.crossings.push_back(crossing);
      part.crossings.back().left = position[crossing.left];
      part.crossings.back().right = position[crossing.right];
    }
  }
  return part;
}

// The hosts of these sites alone, with what joins them, of a tree that knows more hosts.
SiteTree Cropped(const Tree& tree, const std::vector<SiteTree>& sites) {
  SiteTree cropped;
  for (const SiteTree& site : sites) {
    cropped.hosts.insert(cropped.hosts.end(), site.hosts.begin(), site.hosts.end());
  }
  std::vector<int> name(tree.vertex_count, -1);
  Tree& own = cropped.tree;
  for (const int host : cropped.hosts) {
    name[host] = own.vertex_count++;
  }
  own.host_count = own.vertex_count;
  for (Link link : tree.links) {
    for (int* end : {&link.u, &link.v}) {
      if (name[*end] < 0) {
        name[*end] = own.vertex_count++;
      }
      *end = name[*end];
    }
    own.links.push_back(link);
  }
  return cropped;
}

// The part with the most hosts that answered anybody.
int Largest(const std::vector<int>& part_of, const std::vector<SiteTree>& trees,
            const Ledger& ledger) {
  std::vector<long> hosts(trees.size(), 0);
  for (size_t i = 0; i < trees.size(); ++i) {
    hosts[part_of[i]] += std::count_if(trees[i].hosts.begin(), trees[i].hosts.end(),
                                       [&](int host) { return ledger.Answered(host) > 0; });
  }
  return static_cast<int>(std::max_element(hosts.begin(), hosts.end()) - hosts.begin());
}

}  // namespace

JoinedIslands JoinIslands(int host_count, const std::vector<SiteTree>& sites,
                          const Ledger& ledger) {
  JoinedIslands result;
  result.gateways.resize(sites.size());
  std::vector<Crossing> direct;
  for (size_t i = 0; i < sites.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      direct.push_back({.left = static_cast<int>(j),
                        .right = static_cast<int>(i),
                        .observations = ledger.Between(sites[j].hosts, sites[i].hosts)});
    }
  }
  const std::vector<int> island_of = PartsOf(sites.size(), direct);

  // Each island by itself, of what was measured directly.
  std::vector<SiteTree> islands;
  for (size_t number = 0; number < sites.size(); ++number) {
    const Part part = Select(static_cast<int>(number), island_of, sites, direct);
    if (part.members.empty()) {
      continue;
    }
    Joined joined = JoinSites(host_count, part.trees, part.crossings);
    for (size_t i = 0; i < part.members.size(); ++i) {
      result.gateways[part.members[i]] = joined.gateways[i];
    }
    if (part.members.size() == sites.size()) {
      result.tree = std::move(joined.tree);
      return result;
    }
    islands.push_back(Cropped(joined.tree, part.trees));
  }

  // Together, of what went through a relay.
  std::vector<Crossing> relayed;
  for (size_t i = 0; i < islands.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      relayed.push_back({.left = static_cast<int>(j),
                         .right = static_cast<int>(i),
                         .observations = ledger.RelayedBetween(islands[j].hosts, islands[i].hosts),
                         .is_relayed = true});
    }
  }
  const std::vector<int> part_of = PartsOf(islands.size(), relayed);
  const int largest = Largest(part_of, islands, ledger);
  const Part part = Select(largest, part_of, islands, relayed);
  result.tree = JoinSites(host_count, part.trees, part.crossings).tree;
  for (size_t i = 0; i < islands.size(); ++i) {
    if (part_of[i] != largest) {
      result.cut.insert(result.cut.end(), islands[i].hosts.begin(), islands[i].hosts.end());
    }
  }
  return result;
}

}  // namespace sekisho::topology
