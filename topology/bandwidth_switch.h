// SPDX-License-Identifier: Apache-2.0
// The branches of one switch, measured against each other until it is known what the link of each
// carries: docs/protocol/12-topology.md, "Bandwidth".  Pure.
#pragma once

#include <span>
#include <utility>
#include <vector>

namespace sekisho::topology {

// Hosts of one branch of a switch that send to hosts of others, all flows at once.
struct Transfer {
  int vertex = 0;           // the switch
  int one = 0;              // which of its branches
  std::vector<int> others;  // and those that it sends to
  std::vector<int> links;   // of all of them, as indices into Tree::links
  std::vector<std::pair<int, int>> flows;
};

struct Branch {
  int link = 0;
  std::vector<int> hosts;  // that send, spread over the subtree
  double supply = 0;       // what they can send up to the link
  double best = 0;  // the most that was seen on the link; of what lies beyond, what it may carry
  double sure = 0;  // of what lies beyond: what was seen of that
  double met = 0;          // the most that those whom it was measured with could carry
  std::vector<int> with;   // who those were when the most was seen
  bool is_known = false;   // it is this link that carries no more, or its hosts send no more
};

class Switch {
 public:
  Switch(int vertex, std::vector<Branch> branches)
      : vertex_(vertex), own_(branches.size()), branches_(std::move(branches)) {}

  // At once, no two with the same branch.  None: its branches can say no more.
  std::vector<Transfer> Match();
  void Report(const Transfer& transfer, double mbps);

  // Goes on with hosts beyond the switch as one more branch: those of other branches of so many
  // switches above, which should carry so much.
  void Resume(Branch beyond);
  // There first, if more is wanted by now than last time.
  void LookFarther();
  int climb() const { return climb_; }
  double Wanted() const;

  int vertex() const { return vertex_; }
  std::span<const Branch> branches() const { return {branches_.data(), own_}; }
  bool IsDone() const;
  // Its hosts could not send more, or the others together not take more.
  bool IsAtLeast(const Branch& branch) const;

 private:
  bool IsBeyond(int branch) const { return branch == static_cast<int>(own_); }
  double Best(const std::vector<int>& branches) const;
  double Sure(const std::vector<int>& branches) const;
  void Infer();
  std::vector<int> Partners(int one, const std::vector<bool>& is_taken) const;
  Transfer Between(int one, std::vector<int> others) const;

  int vertex_;
  size_t own_;  // branches; one more is what lies beyond
  std::vector<Branch> branches_;
  int climb_ = 1;
  double wanted_ = 0;  // the last time
  int rounds_ = 0;
};

}  // namespace sekisho::topology
