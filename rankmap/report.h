// SPDX-License-Identifier: Apache-2.0
// A picture of a placement: matrix, link loads before and after, places, and on grids what waits at the routers while
// all messages are sent at once.
#pragma once

#include <string>

#include "rankmap/evaluate.h"

namespace sekisho::rankmap {

// One SVG; `before` is what the ranks' natural order or the start gave.
std::string RenderSvg(const Pattern& pattern, const Network& network, const Placement& before,
                      const Placement& after);

// The same in a page of its own, with the numbers.
std::string RenderHtml(const Pattern& pattern, const Network& network, const Placement& before,
                       const Placement& after);

}  // namespace sekisho::rankmap
