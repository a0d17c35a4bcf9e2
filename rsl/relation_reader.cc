// SPDX-License-Identifier: Apache-2.0
// Values of one relation to typed fields.
#include "rsl/relation_reader.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "rsl/lexer.h"
#include "rsl/printer.h"

namespace sekisho::rsl {
namespace {

constexpr std::int64_t kNumberMax = std::numeric_limits<std::int32_t>::max();

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

template <typename T>
bool Number(std::string_view text, T& number, int base) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number, base);
  return error == std::errc() && stopped == end && !text.empty();
}

bool IsLiteral(const Value& value) { return value.kind == Value::Kind::kLiteral; }

std::string Shown(const std::vector<Value>& values) {
  std::string text;
  for (const Value& value : values) {
    text += text.empty() ? "" : " ";
    text += Print(value);
    if (text.size() > 200) {
      break;  // Quote() shortens it anyway
    }
  }
  return Quote(text);
}

}  // namespace

Failure RelationReader::Malformed(Position where, std::string expected, std::string seen) const {
  return Error{attribute_.malformed, std::string(attribute_.name), where,
               fmt::format("expected {}, saw {}", expected, seen), ""};
}

Failure RelationReader::Invalid(std::string expected, std::string seen) const {
  return Error{attribute_.invalid, std::string(attribute_.name), spec_.relation.values[0].where,
               fmt::format("expected {}, saw {}", expected, seen), ""};
}

Failure RelationReader::Expect(Operator op) const {
  if (spec_.relation.op == op) {
    return std::nullopt;
  }
  return Malformed(spec_.where, Quote(rsl::ToText(op)), Quote(rsl::ToText(spec_.relation.op)));
}

Failure RelationReader::OneLiteral(const Value*& literal) const {
  const std::vector<Value>& values = spec_.relation.values;
  if (values.size() != 1 || !IsLiteral(values[0])) {
    return Malformed(values[0].where, "one value", Shown(values));
  }
  literal = &values[0];
  return std::nullopt;
}

Failure RelationReader::Text(std::string& text) const {
  const Value* literal = nullptr;
  if (Failure failure = OneLiteral(literal)) {
    return failure;
  }
  if (literal->text.empty()) {
    return Invalid("a text", "an empty one");
  }
  text = literal->text;
  return std::nullopt;
}

Failure RelationReader::WholeNumber(std::int64_t& number, std::int64_t least, std::int64_t most) const {
  const Value* literal = nullptr;
  if (Failure failure = OneLiteral(literal)) {
    return failure;
  }
  std::int64_t read = 0;
  if (!Number(literal->text, read, 10) || read < least || read > most) {
    return Invalid(fmt::format("a whole number from {} to {}", least, most),
                   Quote(literal->text));
  }
  number = read;
  return std::nullopt;
}

Failure RelationReader::Integer(std::int64_t& number, std::int64_t least) const {
  return WholeNumber(number, least, kNumberMax);
}

Failure RelationReader::Bytes(std::optional<std::int64_t>& number) const {
  std::int64_t read = 0;
  if (Failure failure = WholeNumber(read, 0, std::numeric_limits<std::int64_t>::max())) {
    return failure;
  }
  number = read;
  return std::nullopt;
}

Failure RelationReader::Integer(std::optional<std::int64_t>& number, std::int64_t least) const {
  std::int64_t read = 0;
  if (Failure failure = Integer(read, least)) {
    return failure;
  }
  number = read;
  return std::nullopt;
}

Failure RelationReader::Octal(std::optional<unsigned>& number, unsigned most) const {
  const Value* literal = nullptr;
  if (Failure failure = OneLiteral(literal)) {
    return failure;
  }
  unsigned read = 0;
  if (!Number(literal->text, read, 8) || read > most) {
    return Invalid(fmt::format("an octal number from 0 to {:o}", most), Quote(literal->text));
  }
  number = read;
  return std::nullopt;
}

Failure RelationReader::YesNo(bool& value) const {
  constexpr std::string_view kChoices[] = {"yes", "no"};
  size_t chosen = 0;
  if (Failure failure = Choice(kChoices, chosen)) {
    return failure;
  }
  value = chosen == 0;
  return std::nullopt;
}

Failure RelationReader::Choice(std::span<const std::string_view> choices, size_t& chosen) const {
  const Value* literal = nullptr;
  if (Failure failure = OneLiteral(literal)) {
    return failure;
  }
  const std::string text = Lower(literal->text);
  for (size_t i = 0; i < choices.size(); ++i) {
    if (text == choices[i]) {
      chosen = i;
      return std::nullopt;
    }
  }
  return Invalid(fmt::format("one of {}", fmt::join(choices, ", ")), Quote(literal->text));
}

Failure RelationReader::Texts(std::vector<std::string>& texts) const {
  std::vector<std::string> read;
  for (const Value& value : spec_.relation.values) {
    if (!IsLiteral(value)) {
      return Malformed(value.where, "a plain value", Quote(Print(value)));
    }
    read.push_back(value.text);
  }
  texts = std::move(read);
  return std::nullopt;
}

Failure RelationReader::Pairs(std::vector<std::pair<std::string, std::string>>& pairs) const {
  std::vector<std::pair<std::string, std::string>> read;
  for (const Value& value : spec_.relation.values) {
    if (value.kind != Value::Kind::kSequence || value.children.size() != 2 ||
        !IsLiteral(value.children[0]) || !IsLiteral(value.children[1])) {
      return Malformed(value.where, "a pair in parentheses, (a b)", Quote(Print(value)));
    }
    read.emplace_back(value.children[0].text, value.children[1].text);
  }
  pairs = std::move(read);
  return std::nullopt;
}

Failure RelationReader::Destinations(
    std::vector<std::pair<std::string, std::string>>& destinations) const {
  const std::vector<Value>& values = spec_.relation.values;
  std::vector<std::pair<std::string, std::string>> read;
  const auto add = [&](const std::vector<Value>& parts, Position where) -> Failure {
    if (parts.size() > 2 || !std::all_of(parts.begin(), parts.end(), IsLiteral)) {
      return Malformed(where, "a destination and perhaps a tag", Shown(parts));
    }
    if (parts[0].text.empty()) {
      return Malformed(where, "a destination", "an empty text");
    }
    read.emplace_back(parts[0].text, parts.size() == 2 ? parts[1].text : "");
    return std::nullopt;
  };

  if (values[0].kind != Value::Kind::kSequence) {
    if (Failure failure = add(values, values[0].where)) {
      return failure;
    }
  } else {
    for (const Value& value : values) {
      if (value.kind != Value::Kind::kSequence) {
        return Malformed(value.where, "a destination in parentheses", Quote(Print(value)));
      }
      if (Failure failure = add(value.children, value.where)) {
        return failure;
      }
    }
  }
  destinations = std::move(read);
  return std::nullopt;
}

}  // namespace sekisho::rsl
