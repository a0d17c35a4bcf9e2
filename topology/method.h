// SPDX-License-Identifier: Apache-2.0
// What an inference method is to those who run it: it says what to measure now, hears the answers,
// and ends with a tree.  Pure: the time of an event is whoever runs it's affair.
#pragma once

#include <string>
#include <vector>

#include "topology/measurement.h"
#include "topology/redundancy.h"
#include "topology/tree.h"

namespace sekisho::topology {

struct Excluded {
  int host = 0;
  std::string why;
};

struct Outcome {
  Tree tree;
  std::vector<int> site_of;  // sites as told or found; -1: none
  std::vector<Excluded> excluded;
  std::vector<SeveralWays> several_ways;  // switches of the tree that are more than one
};

class Method {
 public:
  virtual ~Method() = default;

  // Measurements to start now.  Nothing to start and nothing under way: the end.
  virtual std::vector<Request> Next() = 0;
  virtual void Report(const Request& request, const Answer& answer) = 0;

  // This host is gone: what is under way with it fails, and what it measured before says too
  // little.
  virtual void Lose(int) {}

  // After the end.
  virtual Outcome Finish() = 0;
};

}  // namespace sekisho::topology
