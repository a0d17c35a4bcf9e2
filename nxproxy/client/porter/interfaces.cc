// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/interfaces.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include <ifaddrs.h>
#include <net/if.h>

#include "nxproxy/client/rules.h"

namespace sekisho::nxproxy::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kFresh(1);
constexpr size_t kInsideTextMax = 230;  // BIND has room for 300, and a site may follow

int CountBits(const wire::Address& mask, bool is_v4) {
  int bits = 0;
  for (size_t i = is_v4 ? 12 : 0; i < mask.ip.size(); ++i) {
    bits += std::popcount(mask.ip[i]);
  }
  return is_v4 ? 96 + bits : bits;
}

bool IsLinkLocal(const wire::Address& address) {
  return address.is_v4() ? address.ip[12] == 169 && address.ip[13] == 254
                         : address.ip[0] == 0xfe && (address.ip[1] & 0xc0) == 0x80;
}

std::vector<Interface> AskKernel() {
  std::vector<Interface> all;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return all;
  }
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_netmask == nullptr || (one->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    const auto address = wire::FromSocket(one->ifa_addr);
    const auto mask = wire::FromSocket(one->ifa_netmask);
    if (address && mask && !IsLoopback(*address) && !IsLinkLocal(*address)) {
      all.push_back({*address, CountBits(*mask, address->is_v4())});
      all.back().address.port = 0;
    }
  }
  freeifaddrs(list);
  return all;
}

}  // namespace

const Interfaces& Interfaces::Read() {
  static Interfaces known({});
  static Clock::time_point due;
  const Clock::time_point now = Clock::now();
  if (now >= due) {
    known = Interfaces(AskKernel());
    due = now + kFresh;
  }
  return known;
}

bool Interfaces::IsOwn(const wire::Address& address) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const Interface& one) { return one.address.ip == address.ip; });
}

bool Interfaces::IsAttached(const wire::Address& address) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Interface& one) {
    for (int bit = 0; bit < one.prefix_bits; ++bit) {
      if (((address.ip[bit / 8] ^ one.address.ip[bit / 8]) >> (7 - bit % 8) & 1) != 0) {
        return false;
      }
    }
    return true;
  });
}

wire::Address Interfaces::Main() const {
  return all_.empty() ? wire::Address{} : all_.front().address;
}

std::string Interfaces::InsideText(const wire::Address& local, bool takes_v4, bool takes_v6) const {
  if (!IsWildcard(local)) {
    return wire::ToText(local);
  }
  std::string text;
  for (const Interface& one : all_) {
    if (one.address.is_v4() ? !takes_v4 : !takes_v6) {
      continue;
    }
    wire::Address address = one.address;
    address.port = local.port;
    const std::string added = wire::ToText(address);
    if (text.size() + 1 + added.size() <= kInsideTextMax) {
      text += text.empty() ? added : "," + added;
    }
  }
  return text;
}

}  // namespace sekisho::nxproxy::client
