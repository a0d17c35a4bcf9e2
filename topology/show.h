// SPDX-License-Identifier: Apache-2.0
// A tree for people and programs: indented text, Graphviz, SVG.  Pure.
#pragma once

#include <string>
#include <vector>

#include "topology/tree.h"

namespace sekisho::topology {

// The switch from which the farthest host is least far; a host if there is no switch; -1: no links.
int Centre(const Tree& tree);

// `names` of all vertices; `notes` of all links, what else there is to say of them (none: nothing).
// Hosts of one switch come on one line, nearest first.
std::string ShowText(const Tree& tree, const std::vector<std::string>& names,
                     const std::vector<std::string>& notes = {});
std::string ShowDot(const Tree& tree, const std::vector<std::string>& names,
                    const std::vector<std::string>& notes = {});
std::string ShowSvg(const Tree& tree, const std::vector<std::string>& names,
                    const std::vector<std::string>& notes = {});

}  // namespace sekisho::topology
