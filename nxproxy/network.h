// SPDX-License-Identifier: Apache-2.0
// Networks, and addresses that nobody is led to.  Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nxproxy/wire/address.h"

namespace sekisho::nxproxy {

class Network {
 public:
  // "192.0.2.0/24", "2001:db8::/32", or one address.
  static std::optional<Network> Parse(std::string_view text);

  bool Contains(const wire::Address& address) const;

 private:
  std::array<uint8_t, 16> ip_{};
  int bits_ = 128;
};

// Comma-separated; nullopt if one of them is none.
std::optional<std::vector<Network>> ParseNetworks(std::string_view text);

bool Contains(const std::vector<Network>& networks, const wire::Address& address);

// Loopback, link-local (where clouds keep their metadata services), multicast, broadcast,
// unspecified.
bool IsSpecial(const wire::Address& address);

struct Ports {
  uint16_t first = 0;
  uint16_t last = 0;
  bool Contains(uint16_t port) const { return port >= first && port <= last; }
};
// "7512" or "20000-29999".
std::optional<Ports> ParsePorts(std::string_view text);

}  // namespace sekisho::nxproxy
