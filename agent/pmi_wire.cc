// SPDX-License-Identifier: Apache-2.0
#include "agent/pmi_wire.h"

#include <algorithm>

namespace sekisho::agent {
namespace {

constexpr std::string_view kEnds = " \t\r\n";

bool IsPlain(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace

const std::string& PmiCommand::Get(const std::string& key) const {
  static const std::string kNone;
  const auto found = values.find(key);
  return found == values.end() ? kNone : found->second;
}

std::optional<PmiCommand> ParsePmi(std::string_view line) {
  PmiCommand command;
  while (!line.empty() && line.size() <= kPmiLineMax) {
    const size_t begin = line.find_first_not_of(kEnds);
    if (begin == std::string_view::npos) {
      line = {};
      break;
    }
    line.remove_prefix(begin);
    const size_t equals = line.find('=');
    const std::string_view key = line.substr(0, equals);
    if (equals == std::string_view::npos || key.empty() ||
        key.find_first_of(kEnds) != std::string_view::npos) {
      return std::nullopt;
    }
    line.remove_prefix(equals + 1);
    size_t end = std::min(line.find_first_of(kEnds), line.size());
    if (key == "value") {  // may hold blanks, and is the last
      end = line.find_last_not_of(kEnds) == std::string_view::npos
                ? 0
                : line.find_last_not_of(kEnds) + 1;
    }
    const std::string value(line.substr(0, end));
    line.remove_prefix(key == "value" ? line.size() : end);
    if (key == "cmd" || key == "mcmd") {
      command.name = value;
    } else {
      command.values[std::string(key)] = value;
    }
  }
  if (!line.empty() || command.name.empty()) {
    return std::nullopt;
  }
  return command;
}

bool IsPmiPair(const std::string& key, const std::string& value) {
  return !key.empty() && key.size() <= kPmiKeyMax && value.size() <= kPmiValueMax && IsPlain(key) &&
         IsPlain(value) && key.find_first_of(" =") == std::string::npos;
}

std::string EncodePmiPairs(const PmiPairs& pairs) {
  std::string text;
  for (const auto& [key, value] : pairs) {
    text += key + "=" + value + "\n";
  }
  return text;
}

std::optional<PmiPairs> DecodePmiPairs(std::string_view text) {
  PmiPairs pairs;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t equals = text.find('=');
    if (end == std::string_view::npos || equals == std::string_view::npos || equals > end) {
      return std::nullopt;
    }
    std::string key(text.substr(0, equals));
    std::string value(text.substr(equals + 1, end - equals - 1));
    if (!IsPmiPair(key, value)) {
      return std::nullopt;
    }
    pairs[std::move(key)] = std::move(value);
    text.remove_prefix(end + 1);
  }
  return pairs;
}

}  // namespace sekisho::agent
