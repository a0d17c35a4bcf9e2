// SPDX-License-Identifier: Apache-2.0
// The network that is emulated, as its file says: vertices, of which some are hosts, and directed
// links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/wan/link.h"

namespace sekisho::wan {

struct Prefix {
  uint32_t address = 0;
  int length = 32;

  uint32_t first() const { return length == 0 ? 0 : address & (~0u << (32 - length)); }
  uint32_t last() const { return length == 32 ? address : first() | (~0u >> length); }
};

// "10.1.0.0/24", or a bare address.  False if it is neither.
bool ParsePrefix(const std::string& text, Prefix& prefix);
std::string ToString(uint32_t address);

struct Host {
  std::string name;
  int vertex = 0;
  std::vector<Prefix> prefixes;  // whose packets it gets
  std::string device = "net0";
  std::string netns;    // a path; "" = where the program runs
  std::string address;  // of the device, "ADDRESS/LENGTH"; "" = none
  std::string cluster;
};

struct Edge {
  int from = 0;
  int to = 0;
  LinkSettings settings;
};

struct Graph {
  std::vector<std::string> vertices;  // names
  std::vector<Edge> edges;
  std::vector<Host> hosts;
  bool is_direct = false;  // every host has a link to every other, and packets take no other way
};

}  // namespace sekisho::wan
