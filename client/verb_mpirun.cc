// SPDX-License-Identifier: Apache-2.0
// sekisho mpirun: one MPI program over the sites of a machine file.  So far it says what it would
// ask for.
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "client/machine_file.h"
#include "client/site_call.h"
#include "client/verbs.h"
#include "client/world_plan.h"

namespace sekisho::client {
namespace {

struct MpirunOptions {
  int ranks = 0;
  std::string machine_file;
  std::vector<std::string> exports;
  std::string mpi;
  std::string directory;
  std::optional<int> max_wall_time;
  bool dump_rsl = false;
};

absl::StatusOr<std::string> ReadFile(const std::string& path, const std::string& otherwise) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return absl::InvalidArgumentError(fmt::format("{}: cannot be read{}", path, otherwise));
  }
  return text.str();
}

absl::StatusOr<std::vector<RankRange>> PartsOf(const MpirunOptions& options) {
  const bool is_named = !options.machine_file.empty();
  const std::string path = is_named ? options.machine_file : "./machines";
  ASSIGN_OR_RETURN(const std::string text,
                   ReadFile(path, is_named ? "" : "; name a machine file: -machinefile FILE"));
  ASSIGN_OR_RETURN(const std::vector<Machine> machines, ParseMachineFile(text, path));
  return DealRanks(machines, options.ranks);
}

// -x NAME sends our own value along, -x NAME=VALUE that one.
absl::StatusOr<JobOptions> JobOf(const MpirunOptions& options,
                                 const std::vector<std::string>& command) {
  JobOptions job;
  job.command = command;
  job.directory = options.directory;
  job.max_wall_time = options.max_wall_time;
  for (const std::string& entry : options.exports) {
    const char* value = entry.find('=') == std::string::npos ? std::getenv(entry.c_str()) : "";
    if (value == nullptr) {
      return absl::InvalidArgumentError(
          fmt::format("-x {}: there is no such variable here", entry));
    }
    job.environment.push_back(entry.find('=') == std::string::npos ? entry + "=" + value : entry);
  }
  if (!options.mpi.empty() && options.mpi != "auto") {
    job.clauses.push_back(fmt::format("(mpi_type={})", options.mpi));
  }
  return job;
}

int MpirunVerb(const MpirunOptions& options, const Invocation& invocation) {
  if (options.ranks < 1 || options.ranks > kRanksMax) {
    return Report(absl::InvalidArgumentError("how many ranks? give -np N"));
  }
  const auto ranges = PartsOf(options);
  if (!ranges.ok()) {
    return Report(ranges.status());
  }
  const auto job = JobOf(options, invocation.command);
  if (!job.ok()) {
    return Report(job.status());
  }
  const auto rsl = MultiRequestRsl(*job, *ranges);
  if (!rsl.ok()) {
    return Report(rsl.status());
  }
  if (!options.dump_rsl) {
    return Report(Refuse(absl::StatusCode::kUnimplemented, 1, "multi-site programs are not run yet",
                         "see what would be asked for with -dumprsl"));
  }
  fmt::print("{}", *rsl);
  return 0;
}

}  // namespace

void AddMpirunVerb(CLI::App& app, Invocation& invocation) {
  auto* verb = app.add_subcommand("mpirun",
                                  "One MPI program over several sites: sekisho mpirun -np N "
                                  "-dumprsl [OPTIONS] PROGRAM ARGUMENTS...");
  auto options = std::make_shared<MpirunOptions>();
  verb->add_option("-n,--np", options->ranks, "How many ranks (-np)");
  verb->add_option("--machinefile", options->machine_file,
                   "Lines \"SITE\" COUNT, filled in order (-machinefile; default ./machines)");
  verb->add_option("-x,--export", options->exports,
                   "NAME or NAME=VALUE for every rank; may be repeated")
      ->allow_extra_args(false);
  verb->add_option("--mpi", options->mpi, "What the program was built with")
      ->check(CLI::IsMember({"mpich", "openmpi", "auto"}));
  verb->add_option("--directory", options->directory, "Working directory at the sites");
  verb->add_option("--max-wall-time", options->max_wall_time, "Minutes")
      ->check(CLI::PositiveNumber);
  verb->add_flag("--dump-rsl", options->dump_rsl,
                 "Print the multi-request; needs no credential (-dumprsl)");
  verb->callback(
      [options, &invocation] { invocation.exit_code = MpirunVerb(*options, invocation); });
}

}  // namespace sekisho::client
