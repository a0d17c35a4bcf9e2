// SPDX-License-Identifier: Apache-2.0
#include "qserver/slurm_words.h"

#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>

#include "common/log.h"
#include "qserver/errors.h"

namespace sekisho::qserver {
namespace {

std::string Quoted(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

constexpr std::array<std::string_view, 10> kEnded = {
    "BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED",
    "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",  "TIMEOUT"};

// Of these sbatch speaks when the controller cannot be asked, or has no room at the moment.
constexpr std::array<std::string_view, 8> kPassing = {
    "controller not responding",
    "Unable to contact slurm controller",
    "Socket timed out",
    "Transport endpoint is not connected",
    "temporarily unable",
    "Slurm backup controller in standby mode",
    "Unexpected message received",
    "Protocol authentication error"};

}  // namespace

absl::Status CheckNames(const EngineRequest& request) {
  if (!IsEngineName(request.partition)) {
    return errors::BadEngineName("queue", request.partition, 37);
  }
  return IsEngineName(request.project) ? absl::OkStatus()
                                 : errors::BadEngineName("project", request.project, 38);
}

std::string SlurmJobName(const std::string& job_id) { return "sekisho-" + job_id; }

std::vector<std::string> SubmitWords(const EngineRequest& request, const SlurmSettings& settings,
                                     bool is_check) {
  std::vector<std::string> words = {settings.commands + "/sbatch",
                                    "--parsable",
                                    "--job-name=" + SlurmJobName(request.job_id),
                                    "--no-requeue",  // it would run twice
                                    "--chdir=/",
                                    "--input=/dev/null",
                                    "--output=/dev/null",
                                    "--error=/dev/null",
                                    "--export=ALL",  // of what SlurmEnvironment gives
                                    "--propagate=NONE",
                                    fmt::format("--ntasks={}", request.processes)};
  if (request.hosts > 0) {
    words.push_back(fmt::format("--nodes={}", request.hosts));
  }
  if (request.wall_time_s > 0) {  // ours ends it first, with its reason
    words.push_back(fmt::format("--time={}", (request.wall_time_s + 59) / 60 + 1));
  }
  if (request.memory_mb > 0) {
    words.push_back(fmt::format("--mem={}M", request.memory_mb));
  }
  if (request.is_exclusive) {
    words.emplace_back("--exclusive");
  }
  if (!request.partition.empty()) {
    words.push_back("--partition=" + request.partition);
  }
  if (!request.project.empty()) {
    words.push_back("--account=" + request.project);
  }
  if (is_check) {
    words.emplace_back("--test-only");
  }
  return words;
}

std::string BatchScript(const EngineRequest& request, const SlurmSettings& settings) {
  std::string pilot = fmt::format("{} --job {} --server {} --ca-directory {}", Quoted(settings.pilot),
                                  Quoted(request.job_id), Quoted(settings.server),
                                  Quoted(settings.ca_directory));
  if (!settings.subject.empty()) {
    pilot += " --server-subject " + Quoted(settings.subject);
  }
  if (settings.process_limit > 0) {
    pilot += fmt::format(" --process-limit {}", settings.process_limit);
  }
  return fmt::format(
      "#!/bin/sh\n"
      "# A job of Sekisho: starts a pilot on each host, which asks the queue server what to run.\n"
      "SEKISHO_PILOT_TOKEN={}\n"
      "SEKISHO_PILOT_PROCESSES=$SLURM_TASKS_PER_NODE\n"
      "export SEKISHO_PILOT_TOKEN SEKISHO_PILOT_PROCESSES\n"
      "if [ \"${{SLURM_JOB_NUM_NODES:-1}}\" -eq 1 ]; then\n"
      "  exec {}\n"
      "fi\n"
      "exec {} --ntasks=\"$SLURM_JOB_NUM_NODES\" --ntasks-per-node=1 --cpu-bind=none --mpi=none --input=none "
      "--kill-on-bad-exit=1 {}\n",
      Quoted(request.token), pilot, Quoted(settings.commands + "/srun"), pilot);
}

std::vector<std::string> CancelWords(const std::string& job_id, const std::string& account,
                                     const SlurmSettings& settings) {
  return {settings.commands + "/scancel", "--quiet", "--name=" + SlurmJobName(job_id), "--user=" + account};
}

// No name is in it that a user could choose: such a name could hold a line of its own.
std::vector<std::string> QueryWords(const SlurmSettings& settings) {
  return {settings.commands + "/squeue", "--noheader", "--states=all", "--format=%A|%T|%r"};
}

std::vector<std::string> SlurmEnvironment(const SlurmSettings& settings) {
  std::vector<std::string> environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  if (!settings.conf.empty()) {
    environment.push_back("SLURM_CONF=" + settings.conf);
  }
  return environment;
}

std::map<std::string, EngineState> ParseQueue(std::string_view listing) {
  std::map<std::string, EngineState> jobs;
  std::istringstream lines{std::string(listing)};
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find('|');
    const size_t second = first == std::string::npos ? first : line.find('|', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    EngineState state;
    state.state = line.substr(first + 1, second - first - 1);
    state.reason = line.substr(second + 1);
    state.has_ended = std::find(kEnded.begin(), kEnded.end(), state.state) != kEnded.end();
    state.is_waiting = state.state == "PENDING";
    jobs[line.substr(0, first)] = std::move(state);
  }
  return jobs;
}

absl::StatusOr<std::string> ParseJobNumber(std::string_view answer) {
  const std::string number(answer.substr(0, answer.find_first_of(";\n")));
  if (number.empty() || number.size() > 10 ||
      number.find_first_not_of("0123456789") != std::string::npos) {
    return absl::UnavailableError(
        fmt::format("expected a job number of sbatch, saw \"{}\"", Printable(std::string(answer.substr(0, 80)))));
  }
  return number;
}

absl::Status SubmitRefusal(std::string_view complaint, int code) {
  std::string text(complaint);
  constexpr std::string_view kPrefix = "sbatch: error: ";
  constexpr std::string_view kFailed = "Batch job submission failed: ";
  constexpr std::string_view kTest = "allocation failure: ";
  if (const size_t at = text.rfind(kPrefix); at != std::string::npos) {
    text = text.substr(at + kPrefix.size());
  }
  for (const std::string_view begin : {kFailed, kTest}) {
    if (text.starts_with(begin)) {
      text = text.substr(begin.size());
    }
  }
  text = text.substr(0, std::min<size_t>(text.find('\n'), 300));
  if (text.empty()) {
    text = fmt::format("sbatch ended with {} and said nothing", code);
  }
  const bool is_passing =
      code > 128 || text.starts_with("sbatch ended") ||
      std::any_of(kPassing.begin(), kPassing.end(),
                  [&](std::string_view word) { return complaint.find(word) != std::string_view::npos; });
  return is_passing ? absl::UnavailableError(Printable(text)) : errors::EngineRefuses("Slurm", Printable(text));
}

}  // namespace sekisho::qserver
