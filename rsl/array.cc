// SPDX-License-Identifier: Apache-2.0
#include "rsl/array.h"

#include <charconv>
#include <cstdint>

namespace sekisho::rsl {
namespace {

// Takes a number off the front of `text`.
std::optional<int> TakeNumber(std::string_view& text, int least) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.front() == '-' || number < least) {
    return std::nullopt;
  }
  text.remove_prefix(size_t(stop - text.data()));
  return number;
}

bool TakeMark(std::string_view& text, char mark) {
  if (!text.starts_with(mark)) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

std::optional<Array::Range> TakeRange(std::string_view& text) {
  const std::optional<int> first = TakeNumber(text, 0);
  std::optional<int> last = first;
  std::optional<int> step = 1;
  if (first && TakeMark(text, '-')) {
    last = TakeNumber(text, *first);
    if (last && TakeMark(text, ':')) {
      step = TakeNumber(text, 1);
    }
  }
  if (!first || !last || !step) {
    return std::nullopt;
  }
  return Array::Range{*first, *last - (*last - *first) % *step, *step};
}

}  // namespace

std::optional<Array> ParseArray(std::string_view text) {
  Array array;
  int64_t elements = 0;
  do {
    const std::optional<Array::Range> range = TakeRange(text);
    if (!range || (!array.ranges.empty() && range->first <= array.ranges.back().last) ||
        array.ranges.size() == kArrayRangesMost) {
      return std::nullopt;
    }
    elements += (range->last - range->first) / range->step + 1;
    array.ranges.push_back(*range);
  } while (TakeMark(text, ','));
  if (TakeMark(text, '%')) {
    const std::optional<int> at_once = TakeNumber(text, 1);
    if (!at_once) {
      return std::nullopt;
    }
    array.at_once = *at_once;
  }
  return text.empty() && elements <= kArrayElementsMost ? std::optional(array) : std::nullopt;
}

std::string ForElement(std::string text, int index) {
  const std::string number = std::to_string(index);
  for (size_t at = text.find(kArrayIndexMark); at != std::string::npos; at = text.find(kArrayIndexMark, at)) {
    text.replace(at, kArrayIndexMark.size(), number);
  }
  return text;
}

}  // namespace sekisho::rsl
