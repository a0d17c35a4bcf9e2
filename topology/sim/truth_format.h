// SPDX-License-Identifier: Apache-2.0
// Known networks as text: lines "u v latency_uv_us latency_vu_us mbps".
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"
#include "topology/sim/truth.h"
#include "topology/text_format.h"

namespace sekisho::topology::sim {

std::string PrintTruth(const Truth& truth);

// Hosts as `hosts` names them, with their sites; without them, every leaf is a host of one site.
absl::StatusOr<Truth> ParseTruth(std::string_view text, std::string_view source,
                                 const HostList& hosts);

}  // namespace sekisho::topology::sim
