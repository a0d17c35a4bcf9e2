// SPDX-License-Identifier: Apache-2.0
// The network as a tree: hosts are leaves, what lies between are switches.  Lengths are round-trip
// times.
#pragma once

#include <vector>

namespace sekisho::topology {

struct Link {
  int u = 0;
  int v = 0;
  double rtt_us = 0;      // what crossing the link adds to a round trip
  double confidence = 1;  // that this link, and so the two switches at its ends, exists
  bool is_relayed = false;  // no cable: what a relay adds, known only through it
};

// Vertices 0 .. host_count-1 are hosts, the others switches.  A host that could not be placed has
// no link.
struct Tree {
  int host_count = 0;
  int vertex_count = 0;
  std::vector<Link> links;

  bool IsHost(int vertex) const { return vertex < host_count; }
};

// A tree hung up at one vertex.
struct Rooted {
  std::vector<int> order;        // parents before children
  std::vector<int> parent;       // -1: the root, or not reached
  std::vector<int> parent_link;  // index into Tree::links
  std::vector<int> level;        // links to the root
  std::vector<double> depth_us;  // round-trip time to the root

  int Ancestor(int a, int b) const;  // the lowest common one
  double Rtt(int a, int b) const;
  int Hops(int a, int b) const;
};

// Whether no two vertices are joined in two ways.
bool IsForest(const Tree& tree);

// Of a forest only the part that holds `root`.
Rooted HangUp(const Tree& tree, int root);

// The same tree without the switches that join just two links and those that lead to no host,
// vertices numbered anew.
Tree Simplified(const Tree& tree);

// Without the hosts for which is_gone is true, and the switches that only they had needed.
Tree Without(Tree tree, const std::vector<bool>& is_gone);

// Joins the two ends of each link for which is_gone is true.
Tree Contracted(const Tree& tree, const std::vector<bool>& is_gone);

}  // namespace sekisho::topology
