// SPDX-License-Identifier: Apache-2.0
// Names and equality of the syntax tree.
#include "rsl/ast.h"

namespace sekisho::rsl {

std::string Canonical(std::string_view attribute) {
  std::string canonical;
  for (char c : attribute) {
    if (c != '_') {
      canonical += (c >= 'A' && c <= 'Z') ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return canonical;
}

std::string_view ToText(Operator op) {
  switch (op) {
    case Operator::kEqual:
      return "=";
    case Operator::kNotEqual:
      return "!=";
    case Operator::kGreater:
      return ">";
    case Operator::kGreaterEqual:
      return ">=";
    case Operator::kLess:
      return "<";
    case Operator::kLessEqual:
      return "<=";
  }
  return "?";
}

bool operator==(const Value& a, const Value& b) {
  return a.kind == b.kind && a.text == b.text && a.children == b.children;
}

bool operator==(const Relation& a, const Relation& b) {
  return Canonical(a.attribute) == Canonical(b.attribute) && a.op == b.op && a.values == b.values;
}

bool operator==(const Spec& a, const Spec& b) {
  return a.kind == b.kind && a.relation == b.relation && a.children == b.children;
}

}  // namespace sekisho::rsl
