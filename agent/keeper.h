// SPDX-License-Identifier: Apache-2.0
// Runs a pilot, and again when it is killed: docs/protocol/13-slurm.md, "Restart".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace sekisho::agent {

// When a program that died is started again.  Pure.
class Restarts {
 public:
  struct Limits {
    std::chrono::milliseconds first_pause{100};  // doubled after each short life
    std::chrono::milliseconds longest_pause{10'000};
    std::chrono::milliseconds long_life{60'000};  // whoever lived so long could work
    int most = 10;                                // short lives in a row
  };
  explicit Restarts(const Limits& limits) : limits_(limits) {}

  // The pause before the next life; none: it is given up.
  std::optional<std::chrono::milliseconds> OnDeath(std::chrono::milliseconds lived);

 private:
  const Limits limits_;
  int short_lives_ = 0;
  std::chrono::milliseconds pause_{0};
};

// Runs `words` (a path and its arguments) until it ends by itself, has been told to end by SIGTERM or SIGINT,
// which are passed on, or is given up.  What it leaves running stays below this process, over any death of it, and ends
// with the last.  Returns its exit code, 1 if it was given up.  For a process with one thread and no children.
int Keep(const std::vector<std::string>& words, const Restarts::Limits& limits);

}  // namespace sekisho::agent
