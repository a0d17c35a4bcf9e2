// SPDX-License-Identifier: Apache-2.0
#include "client/job/job_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "client/ranges.h"

namespace sekisho::client {
namespace {

constexpr const char* kGroup = "Job";

}  // namespace

void AddJobOptions(CLI::App& verb, JobOptions& options) {
  auto* group = verb.add_option_group(kGroup, "Instead of RSL, with a command");
  group->add_option("--count", options.count, "Processes (-np)")->check(kPositive);
  group->add_option("--host-count", options.host_count, "Nodes to spread them over")->check(kPositive);
  group->add_option("--job-type", options.job_type, "single, multiple or mpi");
  group->add_option("--directory", options.directory, "Working directory at the site");
  group->add_option("--env", options.environment, "NAME=VALUE; may be repeated")->allow_extra_args(false);
  group->add_option("--stage-in", options.stage_in, "LOCAL[=REMOTE]: a file of this machine that the job reads there")
      ->allow_extra_args(false);
  group->add_flag("--stage-exe", options.stages_executable, "The command is a program of this machine");
  group->add_option("--stdin", options.standard_input, "File at the site; client://PATH: of this machine");
  group->add_option("--stdout", options.standard_output, "File at the site, or a URL (client://PATH: of this machine), instead of streaming");
  group->add_option("--stderr", options.standard_error, "The same for its standard error");
  group->add_option("--queue", options.queue, "Queue");
  group->add_option("--project", options.project, "Project to charge");
  group->add_option("--max-wall-time", options.max_wall_time, "Minutes")->check(kPositive);
  group->add_option("--max-memory", options.max_memory, "MB a process")->check(kPositive);
  group->add_option("--after", options.after, "Start once this job has ended well; may be repeated")
      ->allow_extra_args(false);
  group->add_option("--after-any", options.after_any, "Start once this job has ended; may be repeated")
      ->allow_extra_args(false);
  group->add_flag("--hold", options.is_held, "Do not start before `sekisho release JOB`");
  group->add_option("--array", options.array, "So many jobs, numbered: 1-1000, or 1-1000%50 for 50 at a time");
  group->add_option("-x", options.clauses, "An RSL relation, e.g. '(arch=amd64)'; may be repeated")
      ->allow_extra_args(false);
}

absl::Status CheckNoneBesideRsl(const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_option_group(kGroup)->get_options()) {
    if (option->count() > 0) {
      return absl::InvalidArgumentError(
          fmt::format("{} goes with a command; of a job in RSL, the RSL says all", option->get_name()));
    }
  }
  return absl::OkStatus();
}

CLI::App* JobVerb(CLI::App& app, const char* name, const char* help, std::vector<std::string>& jobs) {
  auto* verb = app.add_subcommand(name, help);
  verb->add_option("JOB", jobs, "SITE/ID, as submit printed it, or a job contact; elements of arrays: SITE/ID[3-7]")
      ->required();
  return verb;
}

}  // namespace sekisho::client
