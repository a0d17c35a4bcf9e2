// SPDX-License-Identifier: Apache-2.0
// Pages that the first messages would wait for.
#pragma once

#include <cstdint>

#include "transport/pm/types.h"

namespace sekisho::pm {

// Of more streams (nodes times channels) most may never be used; an empty ring shall take nothing.
inline constexpr std::uint32_t kFewStreams = 64;

inline bool HasFewStreams(const Config& config) {
  return config.nodes * std::uint32_t{config.channels} <= kFewStreams;
}

// The first page of each ring, and those of the peers: made in a message's way, five of them take
// longer than it takes to the next host.  Nothing happens in contexts of many streams.
void WarmPages(const Config& config, MutableBytes area, MutableBytes rings);

}  // namespace sekisho::pm
