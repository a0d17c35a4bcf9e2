// SPDX-License-Identifier: Apache-2.0
// Which nodes are near each other: the subtrees of the site's network, as topology/ found it. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/inventory.h"
#include "allocator/usage.h"
#include "topology/text_format.h"

namespace sekisho::allocator {

// One node, or the nodes below one switch: indices in the resource, in the inventory's order.
using Neighbourhood = std::vector<size_t>;

// By resource: its neighbourhoods, those with the fewest nodes first, of these the one whose nodes
// are nearest to each other.
using Nearness = std::unordered_map<std::string, std::vector<Neighbourhood>>;

// A node that the tree does not know is in no neighbourhood but its own.
Nearness FindNearness(const Inventory& inventory, const topology::NamedTree& network);

// Where the job would run: in the smallest neighbourhood in which it fits and `is_allowed`, of
// several of one size the one with the least room left; else anywhere.
std::optional<Shares> PlaceNear(const Usage& usage, const Shape& shape,
                                const std::vector<size_t>& order,
                                const std::vector<Neighbourhood>& neighbourhoods,
                                const std::function<bool(const Shares&)>& is_allowed);

}  // namespace sekisho::allocator
