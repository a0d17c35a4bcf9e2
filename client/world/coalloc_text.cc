// SPDX-License-Identifier: Apache-2.0
#include "client/world/coalloc_text.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/site/harmless.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

const char* StateName(proto::CoallocReply::State state) {
  switch (state) {
    case proto::CoallocReply::READY:
      return "ready";
    case proto::CoallocReply::RELEASED:
      return "released";
    case proto::CoallocReply::DROPPED:
      return "dropped";
    case proto::CoallocReply::ENDED:
      return "ended";
    default:
      return "pending";
  }
}

std::string Ranks(const proto::CoallocReply::Part& part) {
  if (part.first_rank() < 0 || part.count() < 1) {
    return "-";
  }
  return part.count() == 1
             ? fmt::format("{}", part.first_rank())
             : fmt::format("{}-{}", part.first_rank(), part.first_rank() + part.count() - 1);
}

// DUROC's, if its user gave it none.
std::string LabelOf(const proto::CoallocReply& world, int part) {
  const std::string& label = world.part(part).label();
  return label.empty() ? fmt::format("subjob {}", part) : label;
}

}  // namespace

absl::StatusOr<WorldName> ParseWorldName(const std::string& text) {
  constexpr char kPrefix[] = "world-";
  const size_t slash = text.rfind('/');
  if (slash == std::string::npos || slash == 0 || text.compare(slash + 1, 6, kPrefix) != 0) {
    return Refuse(absl::StatusCode::kInvalidArgument, 0, fmt::format("'{}' names no world", text),
                  "write it as 'sekisho mpirun --hold' printed it: SITE/world-...");
  }
  return WorldName{text.substr(0, slash), text.substr(slash + 1)};
}

absl::StatusOr<int> PartNamed(const proto::CoallocReply& world, const std::string& text) {
  std::vector<int> labelled;
  std::vector<int> there;
  for (int i = 0; i < world.part_size(); ++i) {
    if (world.part(i).state() == proto::CoallocReply::DROPPED) {
      continue;
    }
    if (LabelOf(world, i) == text) {
      labelled.push_back(i);
    }
    if (world.part(i).site() == text) {
      there.push_back(i);
    }
  }
  if (labelled.size() == 1) {
    return labelled.front();
  }
  if (labelled.size() > 1) {
    return absl::InvalidArgumentError(
        fmt::format("parts {} have the label '{}': name one by its number", fmt::join(labelled, ", "), text));
  }
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) {
    return number;
  }
  if (there.size() != 1) {
    return absl::InvalidArgumentError(
        there.empty() ? fmt::format("no part is at '{}', or has that label; name its label, site or number", text)
                      : fmt::format("parts {} are at {}: name one by its number", fmt::join(there, ", "), text));
  }
  return there.front();
}

std::string StartTypeName(proto::Charter::StartType type) {
  return type == proto::Charter::LOOSE_BARRIER ? "loose-barrier"
         : type == proto::Charter::NO_BARRIER  ? "no-barrier"
                                               : "strict-barrier";
}

std::string Describe(const proto::CoallocReply& world) {
  std::string text = fmt::format("{:<5}{:<16}{:<16}{:<10}{:<16}{:<10}{}\n", "PART", "LABEL", "SITE",
                                 "RANKS", "START", "STATE", "JOB");
  for (int i = 0; i < world.part_size(); ++i) {
    const proto::CoallocReply::Part& part = world.part(i);
    const std::string job = part.job_id().empty() ? "-" : part.site() + "/" + part.job_id();
    text += fmt::format("{:<5}{:<16}{:<16}{:<10}{:<16}{:<10}{}{}{}\n", i,
                        Harmless(LabelOf(world, i)), Harmless(part.site()), Ranks(part),
                        StartTypeName(part.start()), StateName(part.state()), Harmless(job),
                        part.reason().empty() ? "" : "  ", Harmless(part.reason()));
  }
  return text + (world.is_held()       ? "held: 'sekisho coalloc release' lets it run\n"
                 : world.is_released() ? "released\n"
                                       : "not held: it runs once all its parts stand ready\n");
}

nlohmann::json ToJson(const std::string& name, const proto::CoallocReply& world) {
  nlohmann::json parts = nlohmann::json::array();
  for (int i = 0; i < world.part_size(); ++i) {
    const proto::CoallocReply::Part& part = world.part(i);
    parts.push_back({{"part", i},
                     {"label", LabelOf(world, i)},
                     {"site", part.site()},
                     {"ranks", part.count()},
                     {"first_rank", part.first_rank()},
                     {"start_type", StartTypeName(part.start())},
                     {"state", StateName(part.state())},
                     {"job", part.job_id().empty() ? "" : part.site() + "/" + part.job_id()},
                     {"reason", part.reason()}});
  }
  return {{"world", name},
          {"held", world.is_held()},
          {"released", world.is_released()},
          {"ready_by_ms", world.ready_by_ms()},
          {"parts", parts}};
}

}  // namespace sekisho::client
