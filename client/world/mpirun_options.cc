// SPDX-License-Identifier: Apache-2.0
#include "client/world/mpirun_options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "client/job/text_file.h"
#include "client/world/rank_order.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

absl::StatusOr<std::vector<Machine>> MachinesOf(const MpirunOptions& options) {
  const std::string path = options.machine_file.empty() ? "./machines" : options.machine_file;
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, "name a machine file: -machinefile FILE"));
  return ParseMachineFile(text, path);
}

// The order is signed; parts that may be dropped are numbered at the release.
bool MayLoseParts(const MpirunOptions& options, const std::vector<RankRange>& parts) {
  return options.hold || !options.start_type.empty() ||
         std::any_of(parts.begin(), parts.end(), [](const RankRange& part) { return !part.start_type.empty() || part.is_independent; });
}

// "./app" is "app", below the sources' folder; "": it is none there.
std::string BuiltProgram(const std::string& path) {
  const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  return normal.is_absolute() || normal.empty() || *normal.begin() == ".." ? "" : normal.string();
}

absl::Status CheckBuild(const MpirunOptions& options, const std::vector<std::string>& command) {
  if (options.build.empty()) {
    return options.sources == "." ? absl::OkStatus()
                                  : absl::InvalidArgumentError("--sources: expected --build, and what makes the program of them");
  }
  if (options.stage_exe || options.dump_rsl || !options.per_site_exe.empty()) {
    return absl::InvalidArgumentError("--build makes the program at each site: leave out --stage-exe, --per-site-exe and -dumprsl");
  }
  if (command.empty() || BuiltProgram(command[0]).empty()) {
    return absl::InvalidArgumentError(
        fmt::format("--build: expected the program's path below {}, saw '{}'", options.sources, command.empty() ? "" : command[0]));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RanksOf(const std::string& text) {
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (text == "auto") {
    return 0;
  }
  if (error != std::errc() || end != text.data() + text.size() || ranks < 1 || ranks > kRanksMax) {
    return absl::InvalidArgumentError(
        fmt::format("how many ranks? give -np N, 1 to {}, or -np auto{}", kRanksMax,
                    text.empty() ? "" : fmt::format("; saw '{}'", text)));
  }
  return ranks;
}

absl::StatusOr<std::vector<RankRange>> PartsOf(const MpirunOptions& options, int ranks) {
  ASSIGN_OR_RETURN(const std::vector<Machine> machines, MachinesOf(options));
  if (ranks > 0) {
    return DealRanks(machines, ranks);
  }
  if (options.dump_rsl) {
    return absl::InvalidArgumentError("-np auto asks the sites, and -dumprsl asks nobody: give -np N");
  }
  std::vector<RankRange> most;
  for (const Machine& machine : machines) {
    if (machine.contact == "any") {
      return absl::InvalidArgumentError("-np auto: a line of \"any\" needs a number of ranks: give -np N");
    }
    most.push_back({machine.contact, 0, machine.ranks_max});
  }
  return most;
}

// -x NAME sends our own value along, -x NAME=VALUE that one.
absl::StatusOr<JobOptions> JobOf(const MpirunOptions& options,
                                 const std::vector<std::string>& command) {
  if (command.empty() || command[0].empty()) {
    return Refuse(absl::StatusCode::kInvalidArgument, 0, "no program: give it and its arguments behind the options",
                  "e.g. sekisho mpirun -np 4 -machinefile FILE ./app");
  }
  JobOptions job;
  job.command = command;
  job.directory = options.directory;
  job.max_wall_time = options.max_wall_time;
  job.stage_in = options.stage_in;
  job.stages_executable = options.stage_exe;
  RETURN_IF_ERROR(CheckBuild(options, job.command));
  if (!options.build.empty()) {
    job.command[0] = BuiltProgram(job.command[0]);
    job.is_below_home = true;
  }
  for (const std::string& entry : options.exports) {
    if (entry.empty() || entry[0] == '=') {
      return absl::InvalidArgumentError(fmt::format("-x: expected NAME or NAME=VALUE, saw '{}'", entry));
    }
    const char* value = entry.find('=') == std::string::npos ? std::getenv(entry.c_str()) : "";
    if (value == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("-x {}: there is no such variable here", entry));
    }
    job.environment.push_back(entry.find('=') == std::string::npos ? entry + "=" + value : entry);
  }
  if (!options.profile.empty()) {
    job.environment.push_back("SEKISHO_TRAFFIC=" + options.profile);
  }
  if (options.profile_seconds) {
    job.environment.push_back(fmt::format("SEKISHO_TRAFFIC_SECONDS={}", *options.profile_seconds));
  }
  if (options.profile_iterations) {
    job.environment.push_back(fmt::format("SEKISHO_TRAFFIC_ITERATIONS={}", *options.profile_iterations));
  }
  if (!options.mpi.empty() && options.mpi != "auto") {
    job.clauses.push_back(fmt::format("(mpi_type={})", options.mpi));
  }
  return job;
}

absl::Status OrderRanks(const MpirunOptions& options, std::vector<RankRange>& parts) {
  if (options.rankmap.empty()) {
    return absl::OkStatus();
  }
  if (options.ranks == "auto" && options.rankmap != kRankmapAuto) {
    return absl::InvalidArgumentError("--rankmap FILE is for a number of ranks: give -np N, not -np auto");
  }
  if (MayLoseParts(options, parts)) {
    return absl::InvalidArgumentError(
        "--rankmap gives every rank its place, and with --hold or a start type parts may be dropped, an independent one has none: leave out one of them");
  }
  if (options.rankmap == kRankmapAuto) {
    return options.dump_rsl || !options.written.empty()
               ? absl::InvalidArgumentError("--rankmap auto runs the program first: leave out -dumprsl and -globusrsl, or give --rankmap FILE")
               : absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.rankmap));
  const int ranks = parts.back().first + parts.back().count;
  ASSIGN_OR_RETURN(const std::vector<int> order, ParseRankOrder(text, options.rankmap, ranks));
  ApplyRankOrder(order, parts);
  return absl::OkStatus();
}

}  // namespace sekisho::client
