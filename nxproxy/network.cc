// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/network.h"

#include <charconv>
#include <cstring>

namespace sekisho::nxproxy {
namespace {

std::optional<unsigned> ParseNumber(std::string_view text, unsigned max) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > max) {
    return std::nullopt;
  }
  return value;
}

bool InNetwork(const wire::Address& address, std::string_view network) {
  return Network::Parse(network)->Contains(address);
}

}  // namespace

std::optional<Network> Network::Parse(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string host(text.substr(0, slash));
  const bool is_v6 = host.find(':') != std::string::npos;
  const auto address = wire::ParseAddress(is_v6 ? "[" + host + "]:1" : host + ":1");
  if (!address) {
    return std::nullopt;
  }
  Network network;
  network.ip_ = address->ip;
  if (slash != std::string_view::npos) {
    const auto bits = ParseNumber(text.substr(slash + 1), is_v6 ? 128 : 32);
    if (!bits) {
      return std::nullopt;
    }
    network.bits_ = static_cast<int>(*bits) + (is_v6 ? 0 : 96);
  }
  return network;
}

bool Network::Contains(const wire::Address& address) const {
  const int bytes = bits_ / 8;
  if (std::memcmp(address.ip.data(), ip_.data(), bytes) != 0) {
    return false;
  }
  const int rest = bits_ % 8;
  return rest == 0 || ((address.ip[bytes] ^ ip_[bytes]) >> (8 - rest)) == 0;
}

std::optional<std::vector<Network>> ParseNetworks(std::string_view text) {
  std::vector<Network> networks;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const auto network = Network::Parse(text.substr(0, comma));
    if (!network) {
      return std::nullopt;
    }
    networks.push_back(*network);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return networks;
}

bool Contains(const std::vector<Network>& networks, const wire::Address& address) {
  for (const Network& network : networks) {
    if (network.Contains(address)) {
      return true;
    }
  }
  return false;
}

bool IsSpecial(const wire::Address& address) {
  static constexpr std::string_view kV4[] = {"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16",
                                             "224.0.0.0/3"};
  static constexpr std::string_view kV6[] = {"::/127", "fe80::/10", "ff00::/8"};
  if (address.is_v4()) {
    for (const std::string_view network : kV4) {
      if (InNetwork(address, network)) {
        return true;
      }
    }
    return false;
  }
  for (const std::string_view network : kV6) {
    if (InNetwork(address, network)) {
      return true;
    }
  }
  return false;
}

std::optional<Ports> ParsePorts(std::string_view text) {
  const size_t dash = text.find('-');
  const auto first = ParseNumber(text.substr(0, dash), 65535);
  const auto last =
      dash == std::string_view::npos ? first : ParseNumber(text.substr(dash + 1), 65535);
  if (!first || !last || *first == 0 || *first > *last) {
    return std::nullopt;
  }
  return Ports{static_cast<uint16_t>(*first), static_cast<uint16_t>(*last)};
}

}  // namespace sekisho::nxproxy
