// SPDX-License-Identifier: Apache-2.0
// The kernel's table of TCP sockets: who still listens, which connections still stand.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "nxproxy/wire/address.h"

namespace sekisho::nxproxy::client {

using Pair = std::pair<wire::Address, wire::Address>;  // local, remote

struct PairLess {
  bool operator()(const Pair& one, const Pair& other) const;
};

struct TcpTable {
  std::set<uint64_t> listening;  // inodes
  std::set<uint16_t> listening_ports;
  std::set<Pair, PairLess> connections;
};

// Adds what a text as of /proc/net/tcp or tcp6 tells; lines that cannot be read are skipped.
void ParseTcp(std::string_view text, TcpTable& out);

// Of our network namespace.
TcpTable ReadTcpTable();

}  // namespace sekisho::nxproxy::client
