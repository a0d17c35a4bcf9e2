// SPDX-License-Identifier: Apache-2.0
// What is said to Slurm, and what it says: command lines, the batch script, the listing of jobs.  Pure.
// docs/protocol/13-slurm.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "qserver/engine.h"

namespace sekisho::qserver {

struct SlurmSettings {
  std::string commands;      // directory of sbatch, squeue, scancel
  std::string conf;          // slurm.conf; empty: where Slurm looks by itself
  std::string pilot;         // sekisho-pilot, as the nodes have it
  std::string server;        // HOST:PORT that pilots dial
  std::string ca_directory;  // on the nodes
  std::string subject;       // of the queue server's certificate; empty: it must name HOST
  int64_t process_limit = 0;  // of a task; 0: the pilot's own
};

// Nothing of what a user wrote comes here but partition and project, which are names.
absl::Status CheckNames(const EngineRequest& request);

std::string SlurmJobName(const std::string& job_id);
std::vector<std::string> SubmitWords(const EngineRequest& request, const SlurmSettings& settings,
                                     bool is_check);
std::string BatchScript(const EngineRequest& request, const SlurmSettings& settings);
std::vector<std::string> CancelWords(const std::string& job_id, const std::string& account,
                                     const SlurmSettings& settings);
std::vector<std::string> QueryWords(const SlurmSettings& settings);
std::vector<std::string> SlurmEnvironment(const SlurmSettings& settings);

std::map<std::string, EngineState> ParseQueue(std::string_view listing);
// Of sbatch --parsable: "17" or "17;cluster".
absl::StatusOr<std::string> ParseJobNumber(std::string_view answer);
// What sbatch says when it gives no number.  Unavailable if it may be asked again.
absl::Status SubmitRefusal(std::string_view complaint, int code);

}  // namespace sekisho::qserver
