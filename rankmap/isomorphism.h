// SPDX-License-Identifier: Apache-2.0
// Weighted graphs that are alike: how parts of a regular pattern correspond.
#pragma once

#include <optional>
#include <vector>

#include "rankmap/pattern.h"

namespace sekisho::rankmap {

// The vertex of `to` for each vertex of `from`, `root` to `image` and arcs to arcs of equal
// weights, or nullopt.  Follows arcs from the root and takes the first choice where several fit:
// finds what there is in patterns whose arcs differ (or all are alike), may miss others.
std::optional<std::vector<uint32_t>> FindIsomorphism(const Graph& from, const Graph& to,
                                                     uint32_t root, uint32_t image);

}  // namespace sekisho::rankmap
