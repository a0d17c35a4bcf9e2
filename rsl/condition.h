// SPDX-License-Identifier: Apache-2.0
// What a job demands of its nodes, as relations of Sekisho's own attributes:
// docs/protocol/1-rsl.md, "Attributes of ours".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rsl/ast.h"

namespace sekisho::rsl {

// (memory >= 4096), (arch = x86_64 aarch64), (tags != slow)
struct Condition {
  std::string attribute;  // resource, arch, os, node, memory, clock or tags
  Operator op = Operator::kEqual;
  std::vector<std::string> values;  // one or more; one whole number for memory and clock
};

// "=", "!=", ... back to an operator.
std::optional<Operator> OperatorFromText(std::string_view text);

// resource, arch, os, node: is `actual` one of the values ("="), or none of them ("!=")?
bool SatisfiesText(const Condition& condition, std::string_view actual);

// memory (MB), clock (MHz).
bool SatisfiesNumber(const Condition& condition, std::int64_t actual);

// tags: has `actual` all of the values ("="), or none of them ("!=")?
bool SatisfiesTags(const Condition& condition, std::span<const std::string> actual);

}  // namespace sekisho::rsl
