// SPDX-License-Identifier: Apache-2.0
// Does a node satisfy a condition?
#include "rsl/condition.h"

#include <algorithm>
#include <charconv>

namespace sekisho::rsl {

std::optional<Operator> OperatorFromText(std::string_view text) {
  for (Operator op : {Operator::kEqual, Operator::kNotEqual, Operator::kGreater,
                      Operator::kGreaterEqual, Operator::kLess, Operator::kLessEqual}) {
    if (ToText(op) == text) {
      return op;
    }
  }
  return std::nullopt;
}

bool SatisfiesText(const Condition& condition, std::string_view actual) {
  const bool is_one =
      std::find(condition.values.begin(), condition.values.end(), actual) != condition.values.end();
  return is_one == (condition.op == Operator::kEqual);
}

bool SatisfiesNumber(const Condition& condition, std::int64_t actual) {
  if (condition.values.size() != 1) {
    return false;
  }
  const std::string& text = condition.values[0];
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return false;
  }
  switch (condition.op) {
    case Operator::kEqual:
      return actual == value;
    case Operator::kNotEqual:
      return actual != value;
    case Operator::kGreater:
      return actual > value;
    case Operator::kGreaterEqual:
      return actual >= value;
    case Operator::kLess:
      return actual < value;
    case Operator::kLessEqual:
      return actual <= value;
  }
  return false;
}

bool SatisfiesTags(const Condition& condition, std::span<const std::string> actual) {
  const bool is_wanted = condition.op == Operator::kEqual;
  return std::all_of(condition.values.begin(), condition.values.end(), [&](const std::string& tag) {
    return (std::find(actual.begin(), actual.end(), tag) != actual.end()) == is_wanted;
  });
}

}  // namespace sekisho::rsl
