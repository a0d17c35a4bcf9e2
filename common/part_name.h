// SPDX-License-Identifier: Apache-2.0
// How messages name a part of a world: docs/protocol/15-mpirun.md, "-globusrsl".
#pragma once

#include <string>

#include <fmt/format.h>

namespace sekisho {

// "part 1"; with the label that its user gave it: "part 1 (back)".
inline std::string PartName(int number, const std::string& label) {
  return label.empty() ? fmt::format("part {}", number) : fmt::format("part {} ({})", number, label);
}

}  // namespace sekisho
