// SPDX-License-Identifier: Apache-2.0
// Syntax tree to text.  Parse(Print(tree)) == tree, and so for Format().
#pragma once

#include <string>
#include <string_view>

#include "rsl/ast.h"

namespace sekisho::rsl {

// Canonical: one line, one spelling for one tree, attributes by their canonical names.
std::string Print(const Spec& spec);
std::string Print(const Value& value);

// For people: a relation a line, indented, attributes in their documented spelling; ends in a
// newline.
std::string Format(const Spec& spec);

// `text` as a literal: bare where RSL allows that, else in double quotes.
std::string PrintLiteral(std::string_view text);

}  // namespace sekisho::rsl
