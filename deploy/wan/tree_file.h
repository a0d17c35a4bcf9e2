// SPDX-License-Identifier: Apache-2.0
// Hosts on a tree of switches, one line a cable:
//
//   u v LATENCY_UV_US LATENCY_VU_US MBPS [LOSS]
//
// MBPS 0 is no limit.  Hosts are the vertices with one cable, in the order in which they appear; or
// what a second file names, one line a host: NAME [CLUSTER].  Where there are two ways, the shorter
// is taken. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "deploy/wan/graph.h"

namespace sekisho::wan {

std::optional<Graph> ParseTree(std::string_view text, const std::string& file, std::string& error);

// Says which vertices are hosts.
bool ParseHosts(std::string_view text, const std::string& file, Graph& graph, std::string& error);

// Host number i, from 0, gets the address BASE + 1 + i.  False if there is none, or more than fit.
bool NumberHosts(Graph& graph, const Prefix& base, std::string& error);

}  // namespace sekisho::wan
