// SPDX-License-Identifier: Apache-2.0
#include "client/world/part_choices.h"

#include <algorithm>

#include <fmt/format.h>

namespace sekisho::client {
namespace {

constexpr const char* kStartTypes[] = {"strict-barrier", "loose-barrier", "no-barrier"};

using Choice = std::map<std::string, std::string>;

absl::Status Apply(const Choice& choice, const char* option, std::string RankRange::*field,
                   std::vector<RankRange>& parts) {
  for (const auto& [contact, value] : choice) {
    bool is_used = contact.empty();
    for (RankRange& part : parts) {
      if (part.contact == contact || (contact.empty() && choice.count(part.contact) == 0)) {
        part.*field = value;
        is_used = true;
      }
    }
    if (!is_used) {
      return absl::InvalidArgumentError(fmt::format(
          "{} {}: no part of the program goes to {}; name a site as the machine file does", option,
          contact + "=" + value, contact));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PartChoices> ParsePartChoices(const std::vector<std::string>& programs,
                                             const std::vector<std::string>& start_types) {
  PartChoices choices;
  for (const std::string& entry : programs) {
    const size_t equals = entry.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == entry.size()) {
      return absl::InvalidArgumentError(
          fmt::format("--per-site-exe: expected SITE=PATH, saw '{}'", entry));
    }
    choices.program[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  for (const std::string& entry : start_types) {
    const size_t equals = entry.rfind('=');
    const std::string contact = equals == std::string::npos ? "" : entry.substr(0, equals);
    const std::string type = equals == std::string::npos ? entry : entry.substr(equals + 1);
    if (std::find(std::begin(kStartTypes), std::end(kStartTypes), type) == std::end(kStartTypes)) {
      return absl::InvalidArgumentError(
          fmt::format("--start-type: expected strict-barrier, loose-barrier or no-barrier, or "
                      "SITE= before it, saw '{}'",
                      entry));
    }
    choices.start_type[contact] = type;
  }
  return choices;
}

absl::Status ApplyChoices(const PartChoices& choices, std::vector<RankRange>& parts) {
  RETURN_IF_ERROR(Apply(choices.program, "--per-site-exe", &RankRange::program, parts));
  return Apply(choices.start_type, "--start-type", &RankRange::start_type, parts);
}

}  // namespace sekisho::client
