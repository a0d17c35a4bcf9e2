// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/wire/address.h"

#include <charconv>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace sekisho::nxproxy::wire {
namespace {

constexpr std::array<uint8_t, 12> kV4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr size_t kTextMax = 300;

}  // namespace

bool Address::is_v4() const { return std::memcmp(ip.data(), kV4Prefix.data(), 12) == 0; }

std::optional<HostPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (text.size() > kTextMax || colon == std::string_view::npos || colon == 0) {
    return std::nullopt;
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.front() == '[') {
    if (host.back() != ']' || host.size() < 4) {
      return std::nullopt;
    }
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return std::nullopt;
  }
  unsigned port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0 || port > 65535 ||
      host.find('\0') != std::string_view::npos) {
    return std::nullopt;
  }
  return HostPort{std::string(host), static_cast<uint16_t>(port)};
}

std::optional<Address> ParseAddress(std::string_view text) {
  const std::optional<HostPort> parts = ParseHostPort(text);
  if (!parts) {
    return std::nullopt;
  }
  Address address;
  address.port = parts->port;
  std::memcpy(address.ip.data(), kV4Prefix.data(), 12);
  if (inet_pton(AF_INET, parts->host.c_str(), address.ip.data() + 12) == 1 ||
      inet_pton(AF_INET6, parts->host.c_str(), address.ip.data()) == 1) {
    return address;
  }
  return std::nullopt;
}

std::string IpText(const Address& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.is_v4()) {
    inet_ntop(AF_INET, address.ip.data() + 12, text, sizeof text);
  } else {
    inet_ntop(AF_INET6, address.ip.data(), text, sizeof text);
  }
  return text;
}

std::string JoinHostPort(const std::string& host, uint16_t port) {
  std::string out = host.find(':') == std::string::npos ? host : '[' + host + ']';
  out += ':';
  out += std::to_string(port);
  return out;
}

std::string ToText(const Address& address) { return JoinHostPort(IpText(address), address.port); }

std::optional<Address> FromSocket(const sockaddr* address) {
  Address out;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    std::memcpy(out.ip.data(), kV4Prefix.data(), 12);
    std::memcpy(out.ip.data() + 12, &v4.sin_addr, 4);
    out.port = ntohs(v4.sin_port);
    return out;
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof v6);
    std::memcpy(out.ip.data(), &v6.sin6_addr, 16);
    out.port = ntohs(v6.sin6_port);
    return out;
  }
  return std::nullopt;
}

socklen_t ToSocket(const Address& address, sockaddr_storage& out) {
  std::memset(&out, 0, sizeof out);
  if (address.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    std::memcpy(&v4.sin_addr, address.ip.data() + 12, 4);
    std::memcpy(&out, &v4, sizeof v4);
    return sizeof v4;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  std::memcpy(&v6.sin6_addr, address.ip.data(), 16);
  std::memcpy(&out, &v6, sizeof v6);
  return sizeof v6;
}

}  // namespace sekisho::nxproxy::wire
