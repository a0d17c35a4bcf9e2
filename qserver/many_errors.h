// SPDX-License-Identifier: Apache-2.0
// Errors about arrays and many submissions at a time that their user can meet: docs/protocol/18-arrays.md.
#pragma once

#include <string>

#include <fmt/format.h>

#include "common/refusal.h"

namespace sekisho::qserver::errors {

using absl::StatusCode;

inline absl::Status NoArrayOf(const std::string& what) {
  return Refuse(StatusCode::kUnimplemented, 1, fmt::format("array: there are no arrays of {}", what),
                "submit them one by one; many at a time: sekisho submit --many");
}

inline absl::Status NotAmongMany(const std::string& what) {
  return Refuse(StatusCode::kInvalidArgument, 10, fmt::format("one of many submissions {}", what),
                "submit it alone");
}

inline absl::Status NotOfAnElement() {
  return Refuse(StatusCode::kUnimplemented, 1,
                "array: its files are staged once, for all elements: their names cannot have $(SEKISHO_ARRAY_INDEX)",
                "name each file, and let the elements choose among them");
}

}  // namespace sekisho::qserver::errors
