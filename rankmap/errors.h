// SPDX-License-Identifier: Apache-2.0
// Every error of rank placement that a user can meet.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/status.h"

namespace sekisho::rankmap::errors {

// A file that does not say what it should: "FILE:LINE: what".
inline absl::Status BadFile(std::string_view file, int line, std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("{}:{}: {}", file, line, what));
}

inline absl::Status BadPattern(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("pattern: {}", what));
}

inline absl::Status BadNetwork(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("network: {}", what));
}

inline absl::Status BadPlacement(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("placement: {}", what));
}

inline absl::Status TooManyRanks(int ranks, int slots) {
  return absl::InvalidArgumentError(
      fmt::format("the pattern has {} ranks, the network only {} places", ranks, slots));
}

inline absl::Status NeedsLinks(std::string_view objective) {
  return absl::InvalidArgumentError(fmt::format(
      "objective {} needs a network with links (torus, mesh or tree), not distances", objective));
}

inline absl::Status TooLarge(std::string_view what) {
  return absl::InvalidArgumentError(
      fmt::format("{}: the sums would not fit into 63 bits; use larger units", what));
}

inline absl::Status BadOption(std::string_view what) {
  return absl::InvalidArgumentError(std::string(what));
}

inline absl::Status BadCheckpoint(std::string_view what) {
  return absl::InvalidArgumentError(fmt::format("checkpoint: {}", what));
}

}  // namespace sekisho::rankmap::errors
