// SPDX-License-Identifier: Apache-2.0
// The child's way from the supervisor's fork to the task's program: account, limits, directory,
// standard streams, exec.  Paths are opened as the account.
#pragma once

#include <string>
#include <string_view>

#include "agent/task/spec.h"

namespace sekisho::agent::task {

struct Failure {
  int gram_code = kNoError;  // kNoError: none
  std::string reason;

  bool has() const { return gram_code != kNoError; }
};

// Descriptors that the supervisor has opened; -1: by path, or /dev/null.
struct Streams {
  int input = -1;
  int output = -1;
  int error = -1;
  int release = -1;  // a waiting task: becomes readable when it may run
  int pmi = -1;      // a rank of an MPI program: to its process manager
};

// What a waiting task writes to `failure_fd` once nothing but its exec is left.
inline constexpr char kReadyMark = 'r';

// Does not return: execs, or writes a failure to `failure_fd` and exits.
[[noreturn]] void BecomeTask(const Spec& spec, Streams streams, int failure_fd);

// As BecomeTask writes it; no failure if `bytes` is empty.
Failure DecodeFailure(std::string_view bytes);

// Where a program named without a slash is: in the current directory, else on `path`; the name
// itself if nowhere.
std::string FindProgram(const std::string& name, std::string_view path);

}  // namespace sekisho::agent::task
