// SPDX-License-Identifier: Apache-2.0
#include "allocator/near.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace sekisho::allocator {
namespace {

// The switch from which the farthest vertex is nearest: what is above all others.
int Top(const topology::Tree& tree) {
  if (tree.links.empty()) {
    return -1;
  }
  const auto farthest = [](const topology::Rooted& rooted) {
    return *std::max_element(rooted.order.begin(), rooted.order.end(),
                             [&](int a, int b) { return rooted.depth_us[a] < rooted.depth_us[b]; });
  };
  // From one end of the longest way to the other: the top is where half of it is.
  const int one = farthest(topology::HangUp(tree, tree.links[0].u));
  const topology::Rooted from_one = topology::HangUp(tree, one);
  const int other = farthest(from_one);
  const double half = from_one.depth_us[other] / 2;
  int top = other;
  for (int vertex = other; vertex >= 0 && from_one.depth_us[vertex] >= half;
       vertex = from_one.parent[vertex]) {
    top = vertex;
  }
  return tree.IsHost(top) && from_one.parent[top] >= 0 ? from_one.parent[top] : top;
}

struct Group {
  double width_us;
  Neighbourhood nodes;
};

}  // namespace

Nearness FindNearness(const Inventory& inventory, const topology::NamedTree& network) {
  const topology::Tree& tree = network.tree;
  const int top = Top(tree);
  if (top < 0) {
    return {};
  }
  std::unordered_map<std::string, int> host_of;
  for (int host = 0; host < tree.host_count; ++host) {
    host_of[network.names[host]] = host;
  }
  const topology::Rooted rooted = topology::HangUp(tree, top);
  Nearness nearness;
  for (const Resource& resource : inventory.resources) {
    std::vector<Group> below(tree.vertex_count, Group{0, {}});
    for (size_t node = 0; node < resource.nodes.size(); ++node) {
      const auto at = host_of.find(resource.nodes[node]);
      if (at == host_of.end() || (rooted.parent[at->second] < 0 && at->second != top)) {
        continue;
      }
      for (int vertex = rooted.parent[at->second]; vertex >= 0; vertex = rooted.parent[vertex]) {
        below[vertex].nodes.push_back(node);
        below[vertex].width_us =
            std::max(below[vertex].width_us, rooted.depth_us[at->second] - rooted.depth_us[vertex]);
      }
    }
    std::erase_if(below, [](const Group& group) { return group.nodes.size() < 2; });
    std::stable_sort(below.begin(), below.end(), [](const Group& a, const Group& b) {
      return std::tuple(a.nodes.size(), a.width_us) < std::tuple(b.nodes.size(), b.width_us);
    });
    for (size_t node = 0; node < resource.nodes.size(); ++node) {
      nearness[resource.name].push_back({node});
    }
    for (Group& group : below) {
      nearness[resource.name].push_back(std::move(group.nodes));
    }
  }
  return nearness;
}

std::optional<Shares> PlaceNear(const Usage& usage, const Shape& shape,
                                const std::vector<size_t>& order,
                                const std::vector<Neighbourhood>& neighbourhoods,
                                const std::function<bool(const Shares&)>& is_allowed) {
  std::optional<Shares> best;
  int64_t best_left = 0;
  size_t best_size = 0;
  for (const Neighbourhood& nodes : neighbourhoods) {
    if (best && nodes.size() > best_size) {
      break;
    }
    Shape within = shape;
    within.usable.assign(shape.usable.size(), false);
    for (const size_t node : nodes) {
      within.usable[node] = shape.usable[node];
    }
    const int64_t left = usage.Free(within) - shape.processes;
    if (left < 0 || (best && left >= best_left)) {
      continue;
    }
    std::optional<Shares> shares = usage.Place(within, order);
    if (shares && is_allowed(*shares)) {
      best = std::move(shares);
      best_left = left;
      best_size = nodes.size();
    }
  }
  return best ? best : usage.Place(shape, order);
}

}  // namespace sekisho::allocator
