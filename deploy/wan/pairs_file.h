// SPDX-License-Identifier: Apache-2.0
// Hosts or sites that are linked pair by pair:
//
//   node NAME device=NAME prefix=ADDRESS/LENGTH[,...] [netns=PATH] [address=ADDRESS/LENGTH]
//   link FROM TO [delay_us=N] [rate_mbps=N] [loss=N] [queue_kib=N]
//
// A link is one direction; each pair of nodes needs both.  Without a rate there is no limit and no
// queue. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "deploy/wan/graph.h"

namespace sekisho::wan {

// `error` is "FILE:LINE: key 'loss': expected ..., got ...".
std::optional<Graph> ParsePairs(std::string_view text, const std::string& file, std::string& error);

}  // namespace sekisho::wan
