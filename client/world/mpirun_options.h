// SPDX-License-Identifier: Apache-2.0
// What `sekisho mpirun` is asked, and what follows from that before any site is asked: the parts, the job of each rank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/job/request.h"
#include "client/world/any_part.h"
#include "client/world/machine_file.h"
#include "common/status.h"

namespace sekisho::client {

inline constexpr const char* kRankmapAuto = "auto";

struct MpirunOptions {
  std::string ranks;
  std::string machine_file;
  std::vector<std::string> exports;
  std::string mpi;
  std::string directory;
  std::string profile;
  std::optional<double> profile_seconds;
  std::optional<int> profile_iterations;
  std::string rankmap;  // a file, or auto
  std::string written;  // -globusrsl
  std::optional<int> max_wall_time;
  std::vector<std::string> per_site_exe;
  std::vector<std::string> start_type;
  std::vector<std::string> stage_in;
  AnyPartOptions any;
  std::optional<int> ready_within;
  bool dump_rsl = false, tag_output = false, batch = false, hold = false, no_input = false;
  bool verbose = false, stage_exe = false, encrypt = false;
  std::string build;  // a command
  std::string sources = ".";
};

// 0: as many as are free.
absl::StatusOr<int> RanksOf(const std::string& text);

// With -np auto what each line takes at most; what it gets is known once its site has been asked.
absl::StatusOr<std::vector<RankRange>> PartsOf(const MpirunOptions& options, int ranks);

// Of each rank.
absl::StatusOr<JobOptions> JobOf(const MpirunOptions& options, const std::vector<std::string>& command);

// --rankmap.  auto is left for later: only whether it may be is looked at.
absl::Status OrderRanks(const MpirunOptions& options, std::vector<RankRange>& parts);

}  // namespace sekisho::client
