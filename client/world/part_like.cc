// SPDX-License-Identifier: Apache-2.0
#include "client/world/part_like.h"

#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::client {
namespace {

void Remove(rsl::Spec& spec, const char* attribute) {
  std::erase_if(spec.children, [&](const rsl::Spec& child) {
    return child.kind == rsl::Spec::Kind::kRelation &&
           rsl::Canonical(child.relation.attribute) == attribute;
  });
}

void Set(rsl::Spec& spec, const char* attribute, const std::vector<std::string>& values) {
  Remove(spec, attribute);
  if (values.empty()) {
    return;
  }
  rsl::Spec child;
  child.relation.attribute = attribute;
  for (const std::string& value : values) {
    rsl::Value literal;
    literal.text = value;
    child.relation.values.push_back(std::move(literal));
  }
  spec.children.push_back(std::move(child));
}

}  // namespace

absl::StatusOr<std::string> PartLike(const std::string& text, int ranks,
                                     const std::vector<std::string>& command) {
  auto parsed = rsl::Parse(text);
  if (!parsed.ok() || parsed->kind != rsl::Spec::Kind::kConjunction) {
    return absl::DataLossError("the leader's account of the part cannot be read: " + text);
  }
  rsl::Spec part = *std::move(parsed);
  Set(part, "count", {std::to_string(ranks)});
  if (!command.empty()) {
    Set(part, "executable", {command.front()});
    Set(part, "arguments", {command.begin() + 1, command.end()});
  }
  return rsl::Print(part);
}

}  // namespace sekisho::client
