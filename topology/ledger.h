// SPDX-License-Identifier: Apache-2.0
// Everything measured so far, a pair at a time, and how noisy each host looks.  Pure.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "topology/fit.h"
#include "topology/measurement.h"

namespace sekisho::topology {

class Ledger {
 public:
  explicit Ledger(int hosts) : hosts_(hosts), of_host_(hosts) {}

  void Add(const Request& request, const Answer& answer);
  // As if it had never been asked.
  void Forget(int host);
  bool Has(int a, int b) const { return samples_.contains(Key(a, b)); }
  double Rtt(int a, int b) const;      // < 0: not measured
  bool IsRelayed(int a, int b) const;  // measured, but only through a relay

  int Answered(int host) const { return of_host_[host].answered; }
  int Failed(int host) const { return of_host_[host].failed; }
  const std::vector<int>& Partners(int host) const { return of_host_[host].partners; }
  // It answered once, and no longer: several failed since, with others that are well.
  bool HasFallenSilent(int host) const;

  // How much longer than the shortest a ping of this host usually takes; < 0: unknown.
  double Excess(int host) const;

  // The pairs among `hosts` that were measured directly, by their position there.
  std::vector<Observation> Among(const std::vector<int>& hosts) const;
  // The same of two disjoint lists: a by position in `left`, b in `right`; and those that were
  // measured only through a relay.
  std::vector<Observation> Between(const std::vector<int>& left,
                                   const std::vector<int>& right) const;
  std::vector<Observation> RelayedBetween(const std::vector<int>& left,
                                          const std::vector<int>& right) const;

 private:
  struct Sample {
    double min_us = 0;
    int pings = 0;
    bool is_relayed = false;
    long when = 0;  // of the shortest
  };
  struct Failure {
    int partner = 0;
    long when = 0;  // counted in measurements
  };
  struct HostFacts {
    int answered = 0;
    int failed = 0;
    long last_answer = 0;
    std::vector<Failure> failures;  // since it last answered
    std::vector<int> partners;
    std::vector<double> excess_us;
  };
  uint64_t Key(int a, int b) const;
  Observation Observe(int a, int b, const Sample& sample) const;
  std::vector<Observation> Select(const std::vector<int>& left, const std::vector<int>& right,
                                  bool is_relayed) const;

  int hosts_;
  long added_ = 0;
  std::unordered_map<uint64_t, Sample> samples_;
  std::vector<HostFacts> of_host_;
};

}  // namespace sekisho::topology
