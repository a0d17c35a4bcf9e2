// SPDX-License-Identifier: Apache-2.0
// Reads the values of one evaluated relation into typed fields, with the attribute's error numbers:
// the wrong shape is its RSL_x, a bad value its INVALID_x.  Functions set their result only on
// success.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rsl/ast.h"
#include "rsl/attributes.h"
#include "rsl/error.h"

namespace sekisho::rsl {

using Failure = std::optional<Error>;

class RelationReader {
 public:
  RelationReader(const Attribute& attribute, const Spec& relation)
      : attribute_(attribute), spec_(relation) {}

  const Attribute& attribute() const { return attribute_; }
  Operator op() const { return spec_.relation.op; }

  Failure Text(std::string& text) const;  // one literal, not empty
  Failure Integer(std::int64_t& number, std::int64_t least = 0) const;
  Failure Bytes(std::optional<std::int64_t>& number) const;  // a whole number, also beyond what is one elsewhere
  Failure Integer(std::optional<std::int64_t>& number, std::int64_t least = 0) const;
  Failure Octal(std::optional<unsigned>& number, unsigned most) const;
  Failure YesNo(bool& value) const;
  Failure Choice(std::span<const std::string_view> choices, size_t& chosen) const;
  Failure Texts(std::vector<std::string>& texts) const;  // one or more literals
  // (a b)(c d): each of exactly two literals.
  Failure Pairs(std::vector<std::pair<std::string, std::string>>& pairs) const;
  // dest [tag], or (dest [tag])...
  Failure Destinations(std::vector<std::pair<std::string, std::string>>& destinations) const;

  Failure Malformed(Position where, std::string expected, std::string seen) const;
  Failure Invalid(std::string expected, std::string seen) const;
  Failure Expect(Operator op) const;

 private:
  Failure OneLiteral(const Value*& literal) const;
  Failure WholeNumber(std::int64_t& number, std::int64_t least, std::int64_t most) const;

  const Attribute& attribute_;
  const Spec& spec_;
};

}  // namespace sekisho::rsl
