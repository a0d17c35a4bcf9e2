// SPDX-License-Identifier: Apache-2.0
// A tree for people and programs: indented text, Graphviz, SVG.  Pure.
#pragma once

#include <string>
#include <vector>

#include "topology/tree.h"

namespace sekisho::topology {

// The switch from which the farthest host is least far; a host if there is no switch; -1: no links.
int Centre(const Tree& tree);

// `names` of all vertices.  Hosts of one switch come on one line, nearest first.
std::string ShowText(const Tree& tree, const std::vector<std::string>& names);
std::string ShowDot(const Tree& tree, const std::vector<std::string>& names);
std::string ShowSvg(const Tree& tree, const std::vector<std::string>& names);

}  // namespace sekisho::topology
