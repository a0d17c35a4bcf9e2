// SPDX-License-Identifier: Apache-2.0
#include "allocator/match.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace sekisho::allocator {
namespace {

using Condition = proto::Demand::Condition;

bool IsNumeric(const std::string& attribute) {
  return attribute == "memory" || attribute == "clock";
}

bool IsKnown(const std::string& attribute) {
  for (const char* known : {"resource", "arch", "memory", "clock", "tags", "os", "node"}) {
    if (attribute == known) {
      return true;
    }
  }
  return false;
}

std::optional<int64_t> Number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

bool Compare(int64_t have, const std::string& op, int64_t want) {
  if (op == "=") return have == want;
  if (op == "!=") return have != want;
  if (op == "<") return have < want;
  if (op == "<=") return have <= want;
  if (op == ">") return have > want;
  return have >= want;
}

bool Contains(const auto& values, const std::string& wanted) {
  return std::find(values.begin(), values.end(), wanted) != values.end();
}

Match FromBool(bool is_met) { return is_met ? Match::kYes : Match::kNo; }

Match Unsaid(const NodeFacts& node) { return node.is_up ? Match::kNo : Match::kUnknown; }

Match MatchesText(const std::string& have, const NodeFacts& node, const Condition& condition) {
  if (have.empty()) {
    return Unsaid(node);
  }
  return FromBool(Contains(condition.value(), have) == (condition.op() == "="));
}

Match MatchesNumber(int64_t have, const NodeFacts& node, const Condition& condition) {
  if (have == 0) {
    return Unsaid(node);
  }
  return FromBool(Compare(have, condition.op(), *Number(condition.value(0))));
}

// `=`: has every tag named; `!=`: has none of them.
Match MatchesTags(const std::vector<std::string>& tags, const Condition& condition) {
  const bool is_wanted = condition.op() == "=";
  return FromBool(
      std::all_of(condition.value().begin(), condition.value().end(),
                  [&](const std::string& tag) { return Contains(tags, tag) == is_wanted; }));
}

}  // namespace

absl::Status CheckCondition(const Condition& condition) {
  if (!IsKnown(condition.attribute())) {
    return absl::InvalidArgumentError(
        fmt::format("cannot choose resources by \"{}\"; expected resource, arch, memory, clock, "
                    "tags, os or node",
                    condition.attribute()));
  }
  if (IsNumeric(condition.attribute())) {
    if (condition.value_size() != 1 || !Number(condition.value(0))) {
      return absl::InvalidArgumentError(
          fmt::format("{}: expected one number of {}, saw \"{}\"", ToString(condition),
                      condition.attribute() == "memory" ? "megabytes" : "megahertz",
                      fmt::join(condition.value(), " ")));
    }
  } else if (condition.op() != "=" && condition.op() != "!=") {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} has only = and !=", ToString(condition), condition.attribute()));
  }
  if (condition.value_size() == 0) {
    return absl::InvalidArgumentError(fmt::format("{}: expected a value", condition.attribute()));
  }
  return absl::OkStatus();
}

Match Matches(const Resource& resource, const NodeFacts& node, const Condition& condition) {
  const std::string& attribute = condition.attribute();
  if (attribute == "resource") return MatchesText(resource.name, node, condition);
  if (attribute == "node") return MatchesText(*node.name, node, condition);
  if (attribute == "arch") return MatchesText(node.architecture, node, condition);
  if (attribute == "os") return MatchesText(node.os, node, condition);
  if (attribute == "tags") return MatchesTags(resource.tags, condition);
  if (attribute == "memory") return MatchesNumber(node.memory_mb, node, condition);
  return MatchesNumber(resource.clock_mhz, node, condition);
}

std::string ToString(const Condition& condition) {
  return fmt::format("{}{}{}", condition.attribute(), condition.op(),
                     fmt::join(condition.value(), " "));
}

}  // namespace sekisho::allocator
