// SPDX-License-Identifier: Apache-2.0
// Which of the resources that could run a job gets it.  A policy is one pure comparison; a new one
// is a function and a row in policy.cc.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/status.h"

namespace sekisho::allocator {

// A resource whose total processors suffice and that meets the job's conditions.
struct Candidate {
  int running_jobs = 0;
  int clock_mhz = 0;
  double load_per_processor = 0;  // of its nodes that are up, as their agents report
  bool fits_now = false;
};

struct Policy {
  std::string_view name;
  // True if `a` is to be taken rather than `b`; if neither is better the earlier in the inventory
  // is.
  bool (*is_better)(const Candidate& a, const Candidate& b);
  bool least_loaded_nodes_first;  // inside the resource; else in the inventory's order
  bool keeps_jobs_near = false;   // ... in the smallest subtree of the network
};

// "paper": fewest running jobs, then the fastest clock, busy or not (paper 004, 3.1).
// "load": one where the job fits now, then the least load a processor, then as "paper".
// "near": one where the job fits now, then as "paper"; there the smallest subtree of the network.
absl::StatusOr<Policy> FindPolicy(std::string_view name);

}  // namespace sekisho::allocator
