// SPDX-License-Identifier: Apache-2.0
// The syntax tree of RSL: docs/protocol/1-rsl.md, "Grammar".  Plain values; comparing ignores
// positions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rsl/error.h"

namespace sekisho::rsl {

// Nesting that every tree from Parse() keeps to, so that walking one by recursion is safe on a
// stack of 2 MiB.
inline constexpr int kDepthMax = 2048;

struct Value {
  enum class Kind {
    kLiteral,        // text
    kVariable,       // children: the name, and perhaps a default
    kConcatenation,  // children: two or more literals and variables
    kSequence,       // children: one or more of any kind
  };
  Kind kind = Kind::kLiteral;
  std::string text;
  std::vector<Value> children;
  Position where;
};

enum class Operator { kEqual, kNotEqual, kGreater, kGreaterEqual, kLess, kLessEqual };

struct Relation {
  std::string attribute;  // as written; Canonical() of it is what counts
  Operator op = Operator::kEqual;
  std::vector<Value> values;  // one or more
};

struct Spec {
  enum class Kind {
    kRelation,      // relation
    kConjunction,   // & children
    kDisjunction,   // | children
    kMultiRequest,  // + children
  };
  Kind kind = Kind::kRelation;
  Relation relation;
  std::vector<Spec> children;
  Position where;
};

// max_Wall_Time -> maxwalltime: lower case, no underscores.
std::string Canonical(std::string_view attribute);

// "=", "!=", ...
std::string_view ToText(Operator op);

bool operator==(const Value& a, const Value& b);
bool operator==(const Relation& a, const Relation& b);  // attributes by their canonical names
bool operator==(const Spec& a, const Spec& b);

}  // namespace sekisho::rsl
