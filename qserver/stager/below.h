// SPDX-License-Identifier: Apache-2.0
// Which paths of an account may be named: docs/protocol/17-staging.md, "Paths".  Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sekisho::qserver::stager {

// A path, as one of the roots and what is below it.
struct Below {
  std::string root;
  std::string path;  // relative, no component ".", ".." or empty; may be empty: the root itself
};

// `path` is absolute; InvalidArgument if it has a component ".." or is below no root.
absl::StatusOr<Below> FindBelow(const std::vector<std::string>& roots, std::string_view path);

// Of a relative path; without empty ones and ".".
std::vector<std::string_view> Components(std::string_view path);
// Those before `end`, with slashes.
std::string Joined(const std::vector<std::string_view>& components, size_t begin, size_t end);

}  // namespace sekisho::qserver::stager
