// SPDX-License-Identifier: Apache-2.0
// A file of requests, for --many: docs/protocol/18-arrays.md.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"

namespace sekisho::client {

struct OneOfFile {
  std::string rsl;
  int line = 0;
};

// One a line; blank lines and those that begin with # are none.  Pure.
// InvalidArgument "NAME:LINE: ...", if one of them describes no job, or one that has to be submitted alone.
absl::StatusOr<std::vector<OneOfFile>> ParseMany(const std::string& text, const std::string& name);

// "-": standard input.
std::string NameOfMany(const std::string& path);
absl::StatusOr<std::vector<OneOfFile>> ReadMany(const std::string& path);

}  // namespace sekisho::client
