// SPDX-License-Identifier: Apache-2.0
#include "client/job/one_part.h"

#include <algorithm>

#include "rsl/job_description.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::client {
namespace {

bool IsOfParts(const rsl::Spec& spec, std::string& contact) {
  if (spec.kind != rsl::Spec::Kind::kRelation) {
    return false;
  }
  const rsl::Attribute* attribute = rsl::FindAttribute(spec.relation.attribute);
  if (attribute == nullptr || attribute->group != rsl::Attribute::Group::kPart) {
    return false;
  }
  if (attribute->name == "resourceManagerContact" && spec.relation.values.size() == 1 &&
      spec.relation.values[0].kind == rsl::Value::Kind::kLiteral) {
    contact = spec.relation.values[0].text;
  }
  return true;
}

}  // namespace

std::optional<Placed> OnlyPart(const std::string& text) {
  const auto parsed = rsl::Parse(text);
  if (!parsed.ok() || parsed->kind != rsl::Spec::Kind::kMultiRequest) {
    return std::nullopt;
  }
  auto parts = rsl::SplitParts(*parsed);
  if (!parts.ok() || parts->size() != 1) {
    return std::nullopt;
  }
  rsl::Spec& part = parts->front();
  Placed placed;
  std::erase_if(part.children, [&](const rsl::Spec& spec) { return IsOfParts(spec, placed.contact); });
  placed.rsl = rsl::Print(part);
  return placed.contact.empty() ? std::nullopt : std::optional(placed);
}

}  // namespace sekisho::client
