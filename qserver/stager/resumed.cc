// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/resumed.h"

#include <charconv>

namespace sekisho::qserver::stager {
namespace {

// Takes a number, and `end` behind it, from the front.
std::optional<uint64_t> TakeNumber(std::string_view& text, std::string_view end) {
  uint64_t number = 0;
  const auto [behind, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(size_t(behind - text.data()));
  if (error != std::errc() || !text.starts_with(end)) {
    return std::nullopt;
  }
  text.remove_prefix(end.size());
  return number;
}

}  // namespace

std::optional<uint64_t> SizeIfGoesOn(const Fetched& fetched, const Resumed& answer) {
  constexpr std::string_view kUnit = "bytes ";
  std::string_view range = answer.range;
  if (answer.code != 206 || !range.starts_with(kUnit)) {
    return std::nullopt;
  }
  range.remove_prefix(kUnit.size());
  const auto first = TakeNumber(range, "-");
  const auto last = first ? TakeNumber(range, "/") : std::nullopt;
  const auto size = range == "*" ? fetched.size : last ? TakeNumber(range, "") : std::nullopt;
  const bool is_whole_number = range.empty() || range == "*";
  if (!last || !size || !is_whole_number || *first != fetched.bytes || *last < *first ||
      *size <= *last || (fetched.size && *fetched.size != *size)) {
    return std::nullopt;
  }
  const std::string& same = fetched.validator.starts_with('"') ? answer.tag : answer.modified;
  return same.empty() || same == fetched.validator ? size : std::nullopt;
}

}  // namespace sekisho::qserver::stager
