// SPDX-License-Identifier: Apache-2.0
// MPICH-G2's machine file: which sites an MPI program runs on, and how many ranks on each.
// docs/protocol/15-mpirun.md, "The machine file".  Pure.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sekisho::client {

// One line, and so one part of the job at a time.
struct Machine {
  std::string contact;  // a site's name, or a contact
  int ranks_max = 1;

  friend bool operator==(const Machine&, const Machine&) = default;
};

inline constexpr size_t kMachinesMax = 1024;
inline constexpr int kRanksMax = 100'000;

// InvalidArgument "SOURCE:LINE: what was expected, what was seen".
absl::StatusOr<std::vector<Machine>> ParseMachineFile(std::string_view text,
                                                      const std::string& source);

// HOST-SERVICE, as MPICH-G's files have it (donner.mcs.anl.gov-fork), as the contact
// HOST/jobmanager-SERVICE; any other text as it is.
std::string ContactOfMachine(const std::string& name);

// One part of the program: consecutive ranks.
struct RankRange {
  std::string contact;
  int first = 0;
  int count = 0;
  std::string program = {};     // in place of the command's; "" = that
  std::string start_type = {};  // subjobStartType; "" = strict-barrier
  std::vector<int> ranks = {};  // of each of its processes, where --rankmap orders them
  std::string label = {};       // its user's name for it; "" = none
  bool is_independent = false;  // subjobCommsType: a world of its own, whose ranks count from 0

  int RankOf(int task) const { return ranks.empty() ? first + task : ranks[size_t(task)]; }
  bool Has(int rank) const {
    return ranks.empty() ? first <= rank && rank < first + count : std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  }

  friend bool operator==(const RankRange&, const RankRange&) = default;
};

// As many ranks as are free now: of each line its own count at most.  `site_of` a contact; what one line takes is not free for the
// next.  FailedPrecondition if nothing is.
absl::StatusOr<std::vector<RankRange>> TakeFree(const std::vector<Machine>& machines,
                                                const std::map<std::string, std::string>& site_of,
                                                std::map<std::string, int> free);

// Fills the lines in order, from the top again when all are used up; each use of a line is a part.
// InvalidArgument if that takes more than kMachinesMax parts.
absl::StatusOr<std::vector<RankRange>> DealRanks(const std::vector<Machine>& machines, int ranks);

}  // namespace sekisho::client
