// SPDX-License-Identifier: Apache-2.0
// The bandwidth of every link, from the deepest switches upward: in one stage all switches of one
// level measure at once, for their subtrees share no link.  docs/protocol/12-topology.md,
// "Bandwidth".  Pure.
#pragma once

#include <utility>
#include <vector>

#include "topology/tree.h"

namespace sekisho::topology {

// Hosts of two branches of one switch that send to each other, all flows at once.
struct Transfer {
  int vertex = 0;  // the switch
  int left = 0;    // the two links, as indices into Tree::links
  int right = 0;
  std::vector<std::pair<int, int>> flows;
};

class BandwidthMap {
 public:
  explicit BandwidthMap(const Tree& tree);

  // Transfers to run at once: no two share a link.  None: the end.
  std::vector<Transfer> Next();
  // What its flows carried in all.
  void Report(const Transfer& transfer, double mbps);

  // Of each link; what it carries or, where IsAtLeast, all that the hosts behind it could send.
  const std::vector<double>& mbps() const { return mbps_; }
  bool IsAtLeast(int link) const { return is_at_least_[link]; }
  int stages() const { return stages_; }

 private:
  struct Branch {
    int link = 0;
    std::vector<int> hosts;  // that send, spread over the subtree
    double supply = 0;       // what they can send up to the link
    double best = 0;         // the most that was seen on the link
    int repeats = 0;         // how often the same was seen again
    bool is_known = false;
    std::vector<int> met;  // branches that it was measured with
  };
  struct Level {
    int vertex = 0;
    std::vector<Branch> branches;
    int rounds = 0;
  };

  void BeginLevel();
  std::vector<Transfer> Pair(Level& level);
  double Supply(int vertex) const;
  std::vector<int> Senders(int vertex) const;

  Tree tree_;
  Rooted rooted_;
  std::vector<std::vector<int>> children_;
  std::vector<double> mbps_;
  std::vector<bool> is_at_least_;
  int level_ = 0;
  int stages_ = 0;
  std::vector<Level> active_;
};

}  // namespace sekisho::topology
