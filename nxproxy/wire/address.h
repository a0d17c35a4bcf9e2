// SPDX-License-Identifier: Apache-2.0
// An IP address with a port, IPv4 as ::ffff:a.b.c.d.  docs/protocol/10-nxproxy.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/socket.h>

namespace sekisho::nxproxy::wire {

struct Address {
  std::array<uint8_t, 16> ip{};
  uint16_t port = 0;

  bool is_v4() const;
  bool is_set() const { return *this != Address{}; }
  friend bool operator==(const Address&, const Address&) = default;
};

// "192.0.2.1:80" or "[2001:db8::1]:80"; numbers only.
std::optional<Address> ParseAddress(std::string_view text);
std::string ToText(const Address& address);
std::string IpText(const Address& address);
std::string JoinHostPort(const std::string& host, uint16_t port);  // brackets around IPv6

// "host:port", "[v6]:port"; the host may be a name.  Nullopt if there is no port in 1..65535.
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
std::optional<HostPort> ParseHostPort(std::string_view text);

// Nullopt for families other than IPv4 and IPv6.
std::optional<Address> FromSocket(const sockaddr* address);
// Fills an IPv4 or IPv6 socket address; gives its length.
socklen_t ToSocket(const Address& address, sockaddr_storage& out);

}  // namespace sekisho::nxproxy::wire
