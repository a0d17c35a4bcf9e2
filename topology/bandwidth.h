// SPDX-License-Identifier: Apache-2.0
// The bandwidth of every link, from the deepest switches upward: in one stage all switches of one
// level measure at once, for their subtrees share no link.  What a switch's own branches cannot say
// is asked of hosts beyond it at the end.  docs/protocol/12-topology.md, "Bandwidth".  Pure.
#pragma once

#include <vector>

#include "topology/bandwidth_switch.h"
#include "topology/tree.h"

namespace sekisho::topology {

class BandwidthMap {
 public:
  explicit BandwidthMap(const Tree& tree);

  // Transfers to run at once: no two share a link.  None: the end.
  std::vector<Transfer> Next();
  // What its flows carried in all.
  void Report(const Transfer& transfer, double mbps);

  // Of each link; what it carries or, where IsAtLeast, all that the hosts around it could send.
  const std::vector<double>& mbps() const { return mbps_; }
  bool IsAtLeast(int link) const { return is_at_least_[link]; }
  int stages() const { return stages_; }

 private:
  std::vector<Branch> BranchesAt(int vertex) const;
  void BeginLevel();
  void BeginBeyond();
  void BeginAgain();
  void Settle(Switch at);
  // Free hosts beyond a switch as one more branch of it, and below which vertices all that it
  // takes then lies; no vertices: not now, or there are not so many switches above.
  std::vector<int> LookBeyond(const Switch& from, const std::vector<bool>& is_used,
                              Branch& beyond) const;
  double Supply(int vertex) const;
  std::vector<int> Senders(std::vector<int> branches) const;

  Tree tree_;
  Rooted rooted_;
  std::vector<std::vector<int>> children_;
  std::vector<double> mbps_;
  std::vector<bool> is_at_least_;
  std::vector<double> supply_;  // what the hosts below could send, as it was known then
  int level_ = 0;
  int stages_ = 0;
  std::vector<Switch> active_;
  std::vector<Switch> open_;  // their branches could not say all; deepest first
  bool is_beyond_ = false;
  int beyond_stages_ = 0;
};

}  // namespace sekisho::topology
