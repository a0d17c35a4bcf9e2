// SPDX-License-Identifier: Apache-2.0
// Command lines as people have typed them for decades: single-dash words become --long options by one
// fixed table, and what follows `--` is the user's command, kept apart.  Pure.
#pragma once

#include <string>
#include <vector>

namespace sekisho::client {

struct CommandLine {
  std::vector<std::string> arguments;  // without the program's name
  std::vector<std::string> command;    // after --
  bool has_command = false;
};

// `program` is argv[0]: called as globusrun, the verb is understood.
CommandLine Rewrite(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace sekisho::client
