// SPDX-License-Identifier: Apache-2.0
// A shell command that we talk to: one socket is its standard input and output.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "common/status.h"

namespace sekisho::client {

class ShellChild {
 public:
  ShellChild() = default;
  ~ShellChild();  // ends it
  ShellChild(const ShellChild&) = delete;
  ShellChild& operator=(const ShellChild&) = delete;

  // With these environment variables besides our own.
  absl::Status Start(const std::string& command,
                     const std::vector<std::pair<std::string, std::string>>& variables = {});
  int socket() const { return socket_; }

  // Says "Q" and that nothing more will come; waits until then, then kills it and all of its
  // process group.
  void AskToEnd();
  void End(std::chrono::steady_clock::time_point deadline);

  // Of one that has closed its output: "ended with exit code 3", "was ended by signal 9" or, if it
  // goes on, "closed its output".
  std::string HowItEnded();

 private:
  int socket_ = -1;
  pid_t child_ = -1;
};

}  // namespace sekisho::client
