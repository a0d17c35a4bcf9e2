// SPDX-License-Identifier: Apache-2.0
#include "topology/tree.h"

#include <algorithm>
#include <numeric>

namespace sekisho::topology {

int Rooted::Ancestor(int a, int b) const {
  while (a != b) {
    if (level[a] < level[b]) {
      std::swap(a, b);
    }
    a = parent[a];
  }
  return a;
}

double Rooted::Rtt(int a, int b) const {
  return depth_us[a] + depth_us[b] - 2 * depth_us[Ancestor(a, b)];
}

int Rooted::Hops(int a, int b) const { return level[a] + level[b] - 2 * level[Ancestor(a, b)]; }

bool IsForest(const Tree& tree) {
  std::vector<int> part_of(tree.vertex_count);
  std::iota(part_of.begin(), part_of.end(), 0);
  const auto part = [&](int vertex) {
    while (part_of[vertex] != vertex) {
      vertex = part_of[vertex] = part_of[part_of[vertex]];
    }
    return vertex;
  };
  return std::all_of(tree.links.begin(), tree.links.end(), [&](const Link& link) {
    const int u = part(link.u);
    const int v = part(link.v);
    part_of[u] = v;
    return u != v;
  });
}

Rooted HangUp(const Tree& tree, int root) {
  std::vector<std::vector<int>> links_of(tree.vertex_count);
  for (size_t i = 0; i < tree.links.size(); ++i) {
    links_of[tree.links[i].u].push_back(static_cast<int>(i));
    links_of[tree.links[i].v].push_back(static_cast<int>(i));
  }
  Rooted rooted;
  rooted.parent.assign(tree.vertex_count, -1);
  rooted.parent_link.assign(tree.vertex_count, -1);
  rooted.level.assign(tree.vertex_count, 0);
  rooted.depth_us.assign(tree.vertex_count, 0);
  rooted.order.push_back(root);
  for (size_t next = 0; next < rooted.order.size(); ++next) {
    const int vertex = rooted.order[next];
    for (const int i : links_of[vertex]) {
      if (i == rooted.parent_link[vertex]) {
        continue;
      }
      const Link& link = tree.links[i];
      const int child = link.u == vertex ? link.v : link.u;
      rooted.parent[child] = vertex;
      rooted.parent_link[child] = i;
      rooted.level[child] = rooted.level[vertex] + 1;
      rooted.depth_us[child] = rooted.depth_us[vertex] + link.rtt_us;
      rooted.order.push_back(child);
    }
  }
  return rooted;
}

Tree Simplified(const Tree& tree) {
  std::vector<std::vector<int>> links_of(tree.vertex_count);
  std::vector<Link> links = tree.links;
  std::vector<bool> is_gone(links.size(), false);
  for (size_t i = 0; i < links.size(); ++i) {
    links_of[links[i].u].push_back(static_cast<int>(i));
    links_of[links[i].v].push_back(static_cast<int>(i));
  }
  std::vector<int> work(tree.vertex_count - tree.host_count);
  std::iota(work.begin(), work.end(), tree.host_count);
  while (!work.empty()) {
    const int vertex = work.back();
    work.pop_back();
    auto& mine = links_of[vertex];
    std::erase_if(mine, [&](int i) { return is_gone[i]; });
    const auto other = [&](int i) { return links[i].u == vertex ? links[i].v : links[i].u; };
    if (mine.size() == 1) {
      is_gone[mine[0]] = true;
      if (!tree.IsHost(other(mine[0]))) {
        work.push_back(other(mine[0]));
      }
    } else if (mine.size() == 2) {
      const int near = other(mine[0]);
      const int far = other(mine[1]);
      links[mine[0]] = {near, far, links[mine[0]].rtt_us + links[mine[1]].rtt_us,
                        std::max(links[mine[0]].confidence, links[mine[1]].confidence),
                        links[mine[0]].is_relayed || links[mine[1]].is_relayed};
      is_gone[mine[1]] = true;
      links_of[far].push_back(mine[0]);
      mine.clear();
    }
  }
  std::vector<int> name(tree.vertex_count, -1);
  std::iota(name.begin(), name.begin() + tree.host_count, 0);
  Tree result{.host_count = tree.host_count, .vertex_count = tree.host_count, .links = {}};
  for (size_t i = 0; i < links.size(); ++i) {
    if (!is_gone[i]) {
      for (int* end : {&links[i].u, &links[i].v}) {
        if (name[*end] < 0) {
          name[*end] = result.vertex_count++;
        }
        *end = name[*end];
      }
      result.links.push_back(links[i]);
    }
  }
  return result;
}

Tree Without(Tree tree, const std::vector<bool>& is_gone) {
  std::erase_if(tree.links, [&](const Link& link) {
    return (tree.IsHost(link.u) && is_gone[link.u]) || (tree.IsHost(link.v) && is_gone[link.v]);
  });
  return Simplified(tree);
}

Tree Contracted(const Tree& tree, const std::vector<bool>& is_gone) {
  std::vector<int> joined(tree.vertex_count);
  std::iota(joined.begin(), joined.end(), 0);
  const auto find = [&joined](int vertex) {
    while (joined[vertex] != vertex) {
      vertex = joined[vertex] = joined[joined[vertex]];
    }
    return vertex;
  };
  for (size_t i = 0; i < tree.links.size(); ++i) {
    if (is_gone[i]) {
      const int u = find(tree.links[i].u);
      const int v = find(tree.links[i].v);
      joined[std::max(u, v)] = std::min(u, v);  // a host stays a host
    }
  }
  Tree result{.host_count = tree.host_count, .vertex_count = tree.vertex_count, .links = {}};
  for (size_t i = 0; i < tree.links.size(); ++i) {
    if (!is_gone[i]) {
      Link link = tree.links[i];
      link.u = find(link.u);
      link.v = find(link.v);
      result.links.push_back(link);
    }
  }
  return Simplified(result);
}

}  // namespace sekisho::topology
