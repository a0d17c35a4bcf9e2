// SPDX-License-Identifier: Apache-2.0
// Syntax tree to text.
#include "rsl/printer.h"

#include <algorithm>

#include "rsl/attributes.h"

namespace sekisho::rsl {
namespace {

constexpr int kIndentMax = 40;  // so that a deep tree does not print as a square of blanks

bool IsBare(std::string_view text) {
  if (text.empty() || std::string_view("+&|").find(text.front()) != std::string_view::npos) {
    return false;
  }
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7F &&
           std::string_view("=!<>()\"'^*$#?~").find(c) == std::string_view::npos;
  });
}

char PrefixOf(Spec::Kind kind) {
  switch (kind) {
    case Spec::Kind::kConjunction:
      return '&';
    case Spec::Kind::kDisjunction:
      return '|';
    default:
      return '+';
  }
}

void PrintValue(const Value& value, std::string& out);

void PrintValues(const std::vector<Value>& values, std::string_view separator, std::string& out) {
  bool is_first = true;
  for (const Value& value : values) {
    if (!is_first) {
      out += separator;
    }
    is_first = false;
    PrintValue(value, out);
  }
}

void PrintValue(const Value& value, std::string& out) {
  switch (value.kind) {
    case Value::Kind::kLiteral:
      out += PrintLiteral(value.text);
      return;
    case Value::Kind::kVariable:
      out += "$(";
      PrintValues(value.children, " ", out);
      out += ')';
      return;
    case Value::Kind::kConcatenation:
      PrintValues(value.children, "#", out);
      return;
    case Value::Kind::kSequence:
      out += '(';
      PrintValues(value.children, " ", out);
      out += ')';
      return;
  }
}

void PrintSpec(const Spec& spec, std::string& out) {
  if (spec.kind == Spec::Kind::kRelation) {
    out += PrintLiteral(Canonical(spec.relation.attribute));
    out += ToText(spec.relation.op);
    PrintValues(spec.relation.values, " ", out);
    return;
  }
  out += PrefixOf(spec.kind);
  for (const Spec& child : spec.children) {
    out += '(';
    PrintSpec(child, out);
    out += ')';
  }
}

// The text of `spec` at `indent`, its line already begun.
void FormatSpec(const Spec& spec, int indent, std::string& out) {
  if (spec.kind == Spec::Kind::kRelation) {
    const std::string canonical = Canonical(spec.relation.attribute);
    const Attribute* attribute = FindAttribute(canonical);
    out += PrintLiteral(attribute == nullptr ? canonical : attribute->name);
    out += ' ';
    out += ToText(spec.relation.op);
    out += ' ';
    PrintValues(spec.relation.values, " ", out);
    return;
  }
  out += PrefixOf(spec.kind);
  bool is_first = true;
  for (const Spec& child : spec.children) {
    if (is_first) {
      out += ' ';
    } else {
      out += '\n';
      out.append(static_cast<size_t>(std::min(indent + 2, kIndentMax)), ' ');
    }
    is_first = false;
    out += '(';
    FormatSpec(child, indent + 3, out);
    out += ')';
  }
}

}  // namespace

std::string PrintLiteral(std::string_view text) {
  if (IsBare(text)) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (char c : text) {
    quoted += c;
    if (c == '"') {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string Print(const Spec& spec) {
  std::string out;
  PrintSpec(spec, out);
  return out;
}

std::string Print(const Value& value) {
  std::string out;
  PrintValue(value, out);
  return out;
}

std::string Format(const Spec& spec) {
  std::string out;
  FormatSpec(spec, 0, out);
  return out + '\n';
}

}  // namespace sekisho::rsl
