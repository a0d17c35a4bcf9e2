// SPDX-License-Identifier: Apache-2.0
#include "client/part_choices.h"

#include <fmt/format.h>

namespace sekisho::client {

absl::StatusOr<PartChoices> ParsePartChoices(const std::vector<std::string>& programs) {
  PartChoices choices;
  for (const std::string& entry : programs) {
    const size_t equals = entry.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size()) {
      return absl::InvalidArgumentError(
          fmt::format("--per-site-exe: expected SITE=PATH, saw '{}'", entry));
    }
    choices.program[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return choices;
}

absl::Status ApplyChoices(const PartChoices& choices, std::vector<RankRange>& parts) {
  for (const auto& [contact, program] : choices.program) {
    bool is_used = false;
    for (RankRange& part : parts) {
      if (part.contact == contact) {
        part.program = program;
        is_used = true;
      }
    }
    if (!is_used) {
      return absl::InvalidArgumentError(
          fmt::format("--per-site-exe {}={}: no part of the program goes to {}; name a site as the "
                      "machine file does",
                      contact, program, contact));
    }
  }
  return absl::OkStatus();
}

}  // namespace sekisho::client
