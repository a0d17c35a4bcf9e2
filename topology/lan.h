// SPDX-License-Identifier: Apache-2.0
// The tree of one site: which pairs to measure, how often, and what follows from them.
// docs/protocol/12-topology.md, "Inside a site".  Pure.
#pragma once

#include <random>
#include <vector>

#include "topology/build.h"
#include "topology/ledger.h"
#include "topology/slots.h"

namespace sekisho::topology {

struct LanLimits {
  int full_hosts = 256;  // up to so many hosts every pair is measured
  double pings_a_host = 300;
  int core_hosts = 44;      // above that: so many measure every pair among them ...
  int core_partners = 14;   // ... and each other host so many of them first
  int group_partners = 30;  // and so many of those that seem near
};

class LanSearch {
 public:
  // `members` of the site.
  LanSearch(std::vector<int> members, const LanLimits& limits, uint64_t seed);

  // The next step, once all that the last one asked for is answered: false at the end.
  bool Step(const Ledger& ledger, PairQueue& queue);

  void Drop(int host);
  const std::vector<int>& members() const { return members_; }
  const Tree& tree() const { return tree_; }  // hosts by their position in members()
  bool IsBusy(int position) const { return is_busy_[position]; }
  double spread() const { return report_.spread; }
  // What the tree was built from last, hosts by position: without what drifts.
  const std::vector<Observation>& observations() const { return observations_; }

 private:
  void Calibrate(PairQueue& queue);
  void AskCore(const Ledger& ledger, PairQueue& queue);
  bool AskNear(const Ledger& ledger, PairQueue& queue);
  int AskBusy(const Ledger& ledger, PairQueue& queue);
  bool AskDoubtful(const Ledger& ledger, PairQueue& queue);
  void Build(const Ledger& ledger);
  void BuildFromObservations();
  void Ask(int a, int b, const Ledger& ledger, PairQueue& queue);
  Request Plan(int host_a, int host_b, const Ledger& ledger) const;
  bool IsFull() const;

  std::vector<int> members_;
  LanLimits limits_;
  std::mt19937_64 random_;
  int step_ = 0;
  int doubt_rounds_ = 0;
  bool has_everybody_ = false;
  double quiet_us_ = 0;        // excess of a usual host
  std::vector<bool> is_core_;  // by position
  std::vector<bool> is_busy_;
  std::vector<bool> is_dead_;
  Tree tree_;
  BuildReport report_;
  std::vector<Observation> observations_;
};

}  // namespace sekisho::topology
