// SPDX-License-Identifier: Apache-2.0
// Networks of random kind and size, a seed each: what no family of a fixed shape is.  For attacks
// on the inference, by topology_bench odd.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "topology/sim/truth.h"

namespace sekisho::topology::sim {

// Without those of 4,096 hosts: odd-star4096, odd-site4096, odd-sites4096.
std::vector<std::string_view> OddNames();

// Nothing: there is no such kind.
std::optional<Truth> MakeOdd(std::string_view name, uint64_t seed);

}  // namespace sekisho::topology::sim
