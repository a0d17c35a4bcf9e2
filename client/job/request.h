// SPDX-License-Identifier: Apache-2.0
// What the user typed, as RSL: from options and a command, from a batch script, or as it stands.  Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"

namespace sekisho::client {

// Options that say what a job is; each is an RSL attribute.
struct JobOptions {
  std::vector<std::string> command;
  std::optional<int> count;
  std::optional<int> host_count;
  std::string job_type;
  std::string directory;
  std::vector<std::string> environment;  // NAME=VALUE
  std::string standard_input, standard_output, standard_error;
  std::string queue, project;
  std::optional<int> max_wall_time;  // minutes
  std::optional<int> max_memory;     // MB
  std::vector<std::string> stage_in;  // LOCAL or LOCAL=REMOTE
  bool stages_executable = false;     // the command is a file of this machine
  bool is_below_home = false;         // its path is one in the account's home
  std::vector<std::string> after, after_any;
  bool is_held = false;
  std::string array;                     // 1-1000%50
  std::vector<std::string> clauses;  // RSL relations, as given by -x
};

// InvalidArgument if there is no command or an environment entry has no '='.
absl::StatusOr<std::string> ToRsl(const JobOptions& options);

// A batch script: its #SEKISHO lines as arguments, in order, and the script as a command of its #! shell.
struct Script {
  std::vector<std::string> arguments;
  std::vector<std::string> command;
};
inline constexpr size_t kScriptBytesMax = 100 * 1024;  // one argument of exec(2) holds 128 KiB

// InvalidArgument "NAME:LINE: ..." if the shell is not one that takes -c, or the script is too long.
absl::StatusOr<Script> ParseScript(const std::string& text, const std::string& name,
                                   const std::vector<std::string>& script_arguments);

// Splits one #SEKISHO line as a shell splits words: blanks, '...', "..." and \.
absl::StatusOr<std::vector<std::string>> SplitWords(const std::string& line);

}  // namespace sekisho::client
