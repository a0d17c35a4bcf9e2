// SPDX-License-Identifier: Apache-2.0
// What mpiexec and Open MPI's plm_rsh write after the name of ssh or rsh.  Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sekisho::agent::rsh {

struct CommandLine {
  std::string node;
  std::string command;    // for /bin/sh -c, joined as ssh joins it
  bool no_input = false;  // -n

  bool operator==(const CommandLine&) const = default;
};

// `arguments` without the program's name.  Nothing if host or command is missing.
std::optional<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

}  // namespace sekisho::agent::rsh
