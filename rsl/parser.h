// SPDX-License-Identifier: Apache-2.0
// Text to syntax tree: docs/protocol/1-rsl.md, "Grammar".  Strict: the whole text is RSL, or it is
// an error with its place; nothing is silently dropped.
#pragma once

#include <string_view>

#include "rsl/ast.h"
#include "rsl/error.h"

namespace sekisho::rsl {

inline constexpr size_t kTextSizeMax = 1 << 20;  // bytes

Result<Spec> Parse(std::string_view text);

}  // namespace sekisho::rsl
