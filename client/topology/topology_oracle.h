// SPDX-License-Identifier: Apache-2.0
// An oracle as a child process: docs/protocol/12-topology.md, "Oracle".
#pragma once

#include <string>

#include "client/topology/shell_child.h"
#include "common/status.h"
#include "topology/measurement.h"

namespace sekisho::client {

class TopologyOracle {
 public:
  explicit TopologyOracle(int timeout_s) : timeout_s_(timeout_s) {}

  // Runs `command` in a shell.
  absl::Status Start(const std::string& command) { return child_.Start(command); }
  absl::StatusOr<long> HostCount();
  absl::StatusOr<topology::Answer> Measure(const topology::Request& request, double start_us);

 private:
  absl::StatusOr<std::string> Ask(const std::string& line);

  int timeout_s_;
  ShellChild child_;
  long answers_ = 0;
  long nonsense_ = 0;
  std::string buffer_;
};

}  // namespace sekisho::client
