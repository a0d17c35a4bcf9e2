// SPDX-License-Identifier: Apache-2.0
#include "client/job/many_file.h"

#include <iostream>
#include <sstream>

#include <fmt/format.h>

#include "client/job/staged_files.h"
#include "client/job/text_file.h"
#include "rsl/check.h"

namespace sekisho::client {

absl::StatusOr<std::vector<OneOfFile>> ParseMany(const std::string& text, const std::string& name) {
  std::vector<OneOfFile> jobs;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') {
      continue;
    }
    const rsl::CheckReport checked = rsl::Check(line);
    if (checked.error) {
      return absl::InvalidArgumentError(fmt::format("{}:{}: {}", name, number, checked.error->ToString()));
    }
    if (checked.jobs.size() != 1 || checked.jobs[0].part) {
      return absl::InvalidArgumentError(fmt::format("{}:{}: expected one job, saw a multi-request (+)", name, number));
    }
    if (const auto files = StagedSources(checked.jobs[0]); !files.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: expected a job without files of this machine, saw {}: submit it without --many", name, number,
                      files[0].url));
    }
    if (checked.jobs[0].two_phase_seconds.value_or(0) > 0) {
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: expected a job without two_phase: submit it without --many", name, number));
    }
    jobs.push_back({line, number});
  }
  if (jobs.empty()) {
    return absl::InvalidArgumentError(fmt::format("{}: expected a request (RSL) on each line, saw none", name));
  }
  return jobs;
}

std::string NameOfMany(const std::string& path) { return path == "-" ? "standard input" : path; }

absl::StatusOr<std::vector<OneOfFile>> ReadMany(const std::string& path) {
  if (path == "-") {
    std::ostringstream text;
    text << std::cin.rdbuf();
    return ParseMany(text.str(), NameOfMany(path));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  return ParseMany(text, path);
}

}  // namespace sekisho::client
