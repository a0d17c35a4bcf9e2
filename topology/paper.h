// SPDX-License-Identifier: Apache-2.0
// The method of Shirai, Saito and Taura (2007), for comparison: hosts are inserted one after the
// other where three round-trip times say that they branch off.  docs/protocol/12-topology.md,
// "Method paper".
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "topology/method.h"
#include "topology/slots.h"

namespace sekisho::topology {

class PaperMethod final : public Method {
 public:
  PaperMethod(int hosts, uint64_t seed);

  std::vector<Request> Next() override;
  void Report(const Request& request, const Answer& answer) override;
  Outcome Finish() override;

 private:
  struct Range {
    double min_us, low_us, high_us;
  };
  // What a host is about: first it looks for a near host on the tree as it was, then it is
  // inserted.
  struct Newcomer {
    std::vector<int> candidates;
    int asking = -1;  // the host that it measures just now
    std::map<int, Range> known;
    int failures = 0;
    bool is_looking = false;
    bool is_adding = false;
    int a = -1;   // one end of the path on which the branching point is sought
    int at = -1;  // the branching point so far
    double leaf_us = 0;
  };

  void BeginLooking(int host);
  void BeginAdding(int host);
  void Step(int host);
  void Look(int host);
  void Add(int host);
  void Branch(int host, int b);
  void Connect(int host);
  void GiveUp(int host);
  int Pick(std::vector<int>& from);

  int hosts_;
  std::mt19937_64 random_;
  std::vector<int> order_;
  std::vector<Newcomer> newcomers_;
  std::vector<bool> is_in_;
  std::vector<bool> is_dead_;
  size_t adding_ = 0;  // index into order_
  Tree tree_;
  Slots slots_;
  std::vector<Request> waiting_;
};

}  // namespace sekisho::topology
