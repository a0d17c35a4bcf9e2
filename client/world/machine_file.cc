// SPDX-License-Identifier: Apache-2.0
#include "client/world/machine_file.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

#include "common/refusal.h"

namespace sekisho::client {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kServices[] = {"agent", "condor", "fork", "loadleveler", "lsf",
                                          "pbs",   "rmf",    "sge",  "slurm"};

std::string_view Trim(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const size_t last = text.find_last_not_of(kBlanks);
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

// What follows the contact: nothing, or a count.
absl::StatusOr<int> ParseCount(std::string_view text) {
  if (text.empty()) {
    return 1;
  }
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > kRanksMax) {
    return absl::InvalidArgumentError(
        fmt::format("expected how many ranks, 1 to {}, saw '{}'", kRanksMax, text));
  }
  return count;
}

// `line` is trimmed and not empty.
absl::StatusOr<Machine> ParseLine(std::string_view line) {
  std::string_view contact;
  std::string_view rest;
  if (line.front() == '"') {
    const size_t quote = line.find('"', 1);
    if (quote == std::string_view::npos) {
      return absl::InvalidArgumentError("expected a second '\"' after the contact, saw none");
    }
    contact = line.substr(1, quote - 1);
    rest = line.substr(quote + 1);
    if (!rest.empty() && kBlanks.find(rest.front()) == std::string_view::npos) {
      return absl::InvalidArgumentError(
          fmt::format("expected a blank after the contact, saw '{}'", rest));
    }
  } else {
    const size_t blank = std::min(line.find_first_of(kBlanks), line.size());
    contact = line.substr(0, blank);
    rest = line.substr(blank);
  }
  if (Trim(contact).empty()) {
    return absl::InvalidArgumentError("expected a site's name or a contact, saw none");
  }
  Machine machine{std::string(contact)};
  ASSIGN_OR_RETURN(machine.ranks_max, ParseCount(Trim(rest)));
  return machine;
}

}  // namespace

absl::StatusOr<std::vector<Machine>> ParseMachineFile(std::string_view text,
                                                      const std::string& source) {
  std::vector<Machine> machines;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') {
      continue;
    }
    auto machine = ParseLine(line);
    if (machine.ok() && machines.size() == kMachinesMax) {
      machine =
          absl::InvalidArgumentError(fmt::format("expected at most {} machines", kMachinesMax));
    }
    if (!machine.ok()) {
      const absl::Status& status = machine.status();
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: {}", source, number,
                      std::string_view(status.message().data(), status.message().size())));
    }
    machines.push_back(*std::move(machine));
  }
  if (machines.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: expected lines \"SITE\" COUNT, saw none", source));
  }
  return machines;
}

std::string ContactOfMachine(const std::string& name) {
  const size_t dash = name.rfind('-');
  if (dash == std::string::npos || dash == 0 || name.find_first_of("/:") != std::string::npos ||
      std::find(std::begin(kServices), std::end(kServices), name.substr(dash + 1)) ==
          std::end(kServices)) {
    return name;
  }
  return name.substr(0, dash) + "/jobmanager-" + name.substr(dash + 1);
}

absl::StatusOr<std::vector<RankRange>> TakeFree(const std::vector<Machine>& machines,
                                                const std::map<std::string, std::string>& site_of,
                                                std::map<std::string, int> free) {
  std::vector<RankRange> ranges;
  int next = 0;
  std::string sites;
  for (const Machine& machine : machines) {
    int& left = free[site_of.at(machine.contact)];
    const int count = std::min({machine.ranks_max, left, kRanksMax - next});
    if (count > 0) {
      ranges.push_back({machine.contact, next, count});
      next += count;
      left -= count;
    }
    sites += (sites.empty() ? "" : ", ") + machine.contact;
  }
  if (ranges.empty()) {
    return Refuse(absl::StatusCode::kFailedPrecondition, 3, fmt::format("-np auto: no processor is free at {}", sites),
                  "wait, or give -np N: the parts then wait for processors (--ready-within)");
  }
  return ranges;
}

absl::StatusOr<std::vector<RankRange>> DealRanks(const std::vector<Machine>& machines, int ranks) {
  std::vector<RankRange> parts;
  for (int first = 0; first < ranks;) {
    if (parts.size() == kMachinesMax) {
      return absl::InvalidArgumentError(fmt::format(
          "{} ranks over these machines are more than {} parts: let the lines take more ranks each",
          ranks, kMachinesMax));
    }
    const Machine& machine = machines[parts.size() % machines.size()];
    const int count = std::min(machine.ranks_max, ranks - first);
    parts.push_back({machine.contact, first, count});
    first += count;
  }
  return parts;
}

}  // namespace sekisho::client
