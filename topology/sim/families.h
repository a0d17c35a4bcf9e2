// SPDX-License-Identifier: Apache-2.0
// Networks by name: docs/protocol/12-topology.md, "Families".
#pragma once

#include <string_view>
#include <vector>

#include "common/status.h"
#include "topology/sim/truth.h"

namespace sekisho::topology::sim {

std::vector<std::string_view> FamilyNames();

// A fresh network of a family; names ending in "lab" have the lab's noise.
absl::StatusOr<Truth> MakeFamily(std::string_view name, uint64_t seed);

// `clusters` sites of `hosts / clusters` hosts each, joined as the sites of grid256 are.
Truth MakeGrid(int hosts, int clusters, uint64_t seed);

}  // namespace sekisho::topology::sim
