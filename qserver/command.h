// SPDX-License-Identifier: Apache-2.0
// Runs a program of the system to its end, as some account.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/loop.h"
#include "common/status.h"
#include "qserver/spawn.h"

namespace sekisho::qserver {

struct Command {
  std::vector<std::string> words;        // the program's path first; no shell sees them
  std::vector<std::string> environment;  // all of it
  std::string input;
  std::optional<RunAs> as;               // none: as we are
  std::chrono::milliseconds limit{60'000};  // then it is killed
};
struct CommandEnd {
  int code = 0;  // 128 + N: killed by signal N
  std::string output;
  std::string complaint;  // its standard error
};
// Internal if it cannot be started.
awaitable<absl::StatusOr<CommandEnd>> RunCommand(Command command);

}  // namespace sekisho::qserver
