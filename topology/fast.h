// SPDX-License-Identifier: Apache-2.0
// The default method: sites, then every site's tree at once, then the tree between them.
// docs/protocol/12-topology.md, "Method fast".  Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "topology/islands.h"
#include "topology/lan.h"
#include "topology/ledger.h"
#include "topology/method.h"
#include "topology/sites.h"
#include "topology/slots.h"

namespace sekisho::topology {

struct FastOptions {
  std::vector<int> site_hints;  // of each host; empty: find out
  uint64_t seed = 1;
  int most_at_once = 0;  // measurements of all hosts together; 0: no limit
};

class FastMethod final : public Method {
 public:
  FastMethod(int hosts, const FastOptions& options);

  std::vector<Request> Next() override;
  void Report(const Request& request, const Answer& heard) override;
  void Lose(int host) override;
  Outcome Finish() override;
  const Ledger& ledger() const { return ledger_; }

 private:
  struct Site {
    std::vector<int> hosts;
    std::unique_ptr<LanSearch> search;
    PairQueue queue;
    int under_way = 0;
    bool is_done = false;
    std::vector<int> spread_out;  // hosts, next to each other from different switches
    size_t next = 0;              // of spread_out, for a measurement to another site
  };

  void BeginSites(const std::vector<int>& site_of);
  void StepLan(std::vector<Request>& started);
  void StepWide(std::vector<Request>& started);
  void AskWide(int left, int right, int pairs);
  bool ReviewWide();
  JoinedIslands Join() const;
  std::vector<Observation> InsideSites(const Tree& tree) const;
  void SpreadOut(Site& site);
  void Drop(int host);
  Reach ReachOf(const Request& request) const;
  bool HasCrossed(int left, int right) const;

  int hosts_;
  FastOptions options_;
  std::mt19937_64 random_;
  Ledger ledger_;
  Slots slots_;
  std::vector<bool> is_dropped_;
  std::vector<bool> is_lost_;
  std::unique_ptr<SiteSearch> site_search_;
  std::vector<int> site_of_;
  std::deque<Site> sites_;
  PairQueue wide_;
  int wide_under_way_ = 0;
  int wide_rounds_ = 0;
  long wide_pairs_ = 0;
  long wide_budget_ = 0;
};

}  // namespace sekisho::topology
