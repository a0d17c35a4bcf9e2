// SPDX-License-Identifier: Apache-2.0
// Brings a tree up to date with few measurements: is it still true, and where do newcomers belong?
// docs/protocol/12-topology.md, "Upkeep".  Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "topology/blame.h"
#include "topology/fast.h"
#include "topology/ledger.h"
#include "topology/method.h"
#include "topology/place.h"
#include "topology/shifts.h"
#include "topology/slots.h"

namespace sekisho::topology {

struct Known {
  Tree tree;                  // a host without a link is a newcomer
  std::vector<bool> is_here;  // can measure now; who cannot keeps its place
};

// What became of it.
struct Revision {
  bool is_anew = false;     // too little of it was true, or too little was known: all was inferred
  std::vector<int> placed;  // newcomers
  std::vector<int> moved;   // hosts that are not where they were
  double noise_us = 0;      // how far measurements are from the tree that held
};

class ReviseMethod final : public Method {
 public:
  ReviseMethod(Known known, uint64_t seed);

  std::vector<Request> Next() override;
  void Report(const Request& request, const Answer& answer) override;
  void Lose(int host) override;
  Outcome Finish() override;
  const Revision& revision() const { return revision_; }  // after Finish()

 private:
  enum class Stage { kCheck, kDoubt, kFar, kNear, kDone };

  bool IsPlaced(int host) const { return switch_of_[host] >= 0; }
  void Index();
  void Ask(int from, int to, int pings);
  void AskFar(int host);
  void CheckPair(int a, int b);
  void Check();
  void CheckMore(const std::set<int>& hosts);
  std::set<int> Misfits() const;
  // Pairs that the tree contradicts.
  std::vector<std::pair<int, int>> Doubtful();
  std::set<int> Strays() const;
  void Judge(const std::vector<std::pair<int, int>>& doubtful);
  bool PlaceNext();
  std::vector<Sight> SightsOf(int host) const;
  void Step();
  void InferAnew();

  Known known_;
  uint64_t seed_;
  std::mt19937_64 random_;
  Ledger ledger_;
  Slots slots_;
  PairQueue queue_;
  int under_way_ = 0;
  Stage stage_ = Stage::kCheck;
  int doubt_rounds_ = 0;
  double noise_us_ = 1;
  Shifts shifts_;
  Rooted rooted_;
  std::vector<int> switch_of_;      // of each host; -1: it has no place
  std::vector<int> old_switch_of_;  // before this revision
  std::vector<double> old_leaf_us_;
  std::vector<int> to_place_;               // the last is next
  std::vector<int> here_;                   // and in place
  std::map<int, std::vector<int>> beside_;  // the same by switch
  std::set<std::pair<int, int>> checked_;
  std::vector<bool> is_lost_;

  std::unique_ptr<FastMethod> anew_;  // over those that are here
  std::vector<int> host_of_;          // by its number there
  std::vector<int> number_of_;
  Revision revision_;
};

}  // namespace sekisho::topology
