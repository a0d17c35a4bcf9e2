// SPDX-License-Identifier: Apache-2.0
// Which hosts are near each other: sites, found with about one measurement between sites a host.
// docs/protocol/12-topology.md, "Sites".  Pure.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "topology/ledger.h"
#include "topology/slots.h"

namespace sekisho::topology {

class SiteSearch {
 public:
  SiteSearch(int hosts, uint64_t seed);

  // Probes to start now; slots are taken.
  void Start(const Ledger& ledger, Slots& slots, std::vector<Request>& started);
  void Report(const Request& request, const Answer& answer, const Ledger& ledger);
  void Drop(int host);

  bool IsDone() const { return is_done_; }
  const std::vector<int>& site_of() const { return site_of_; }

 private:
  struct Clue {
    int site;
    double rtt_us;
    int host;
    bool is_sure;             // asked often enough
    bool is_relayed = false;  // the time says nothing
  };
  struct Seeker {
    std::vector<Clue> clues;
    bool is_probing = false;
    int ask_again = -1;  // the host whose answer may have been delayed
  };
  std::optional<Request> Choose(int host, const Slots& slots);
  int BestGuess(int host, bool& is_plausible) const;
  void Settle(int host, int site, const Ledger& ledger);
  void Learn(int host, int other, const Ledger& ledger, bool is_sure);
  bool Probe(const Ledger& ledger, Slots& slots, std::vector<Request>& started);
  void Regroup(const Ledger& ledger);
  double Near() const;
  double Inside(int site, const Ledger& ledger) const;
  void Merge(const Ledger& ledger, Slots& slots, std::vector<Request>& started);
  bool IsExcluded(int host, int site) const;

  std::mt19937_64 random_;
  double shortest_us_ = 1e18;
  std::vector<int> site_of_;
  std::vector<std::vector<int>> members_;
  std::vector<Seeker> seekers_;
  std::vector<int> waiting_;                                    // hosts without a site
  std::vector<std::pair<int, int>> first_;                      // pairs that are asked before all
  std::map<std::pair<int, int>, std::vector<double>> between_;  // round trips
  int under_way_ = 0;
  bool is_merging_ = false;
  bool is_done_ = false;
};

}  // namespace sekisho::topology
