// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/rules.h"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>

namespace sekisho::nxproxy::client {
namespace {

struct Range {
  Address base;
  int bits = 0;  // of 128
};

bool HasPrefix(const Address& address, const Range& range) {
  const int whole = range.bits / 8;
  if (std::memcmp(address.ip.data(), range.base.ip.data(), whole) != 0) {
    return false;
  }
  const int rest = range.bits % 8;
  return rest == 0 || ((address.ip[whole] ^ range.base.ip[whole]) >> (8 - rest)) == 0;
}

// One range of a list, [begin, end).
bool ParseRange(const char* begin, const char* end, Range& out) {
  const char* slash = std::find(begin, end, '/');
  char ip[64];
  if (slash == begin || slash - begin >= static_cast<ptrdiff_t>(sizeof ip)) {
    return false;
  }
  std::memcpy(ip, begin, slash - begin);
  ip[slash - begin] = 0;
  out = Range{};
  int offset = 0;
  out.base.ip[10] = out.base.ip[11] = 0xff;
  if (inet_pton(AF_INET, ip, out.base.ip.data() + 12) == 1) {
    offset = 96;
  } else if (inet_pton(AF_INET6, ip, out.base.ip.data()) != 1) {
    return false;
  }
  int bits = 128 - offset;
  if (slash != end) {
    bits = 0;
    if (slash + 1 == end) {
      return false;
    }
    for (const char* digit = slash + 1; digit < end; ++digit) {
      if (*digit < '0' || *digit > '9' || (bits = bits * 10 + (*digit - '0')) > 128 - offset) {
        return false;
      }
    }
  }
  out.bits = offset + bits;
  return true;
}

// Calls `visit` for each entry; stops when it returns true.  Gives the entry it stopped at, or
// nullptr.
template <typename Visit>
const char* FindEntry(const char* list, Visit visit) {
  while (list != nullptr && *list != 0) {
    const char* end = list + std::strcspn(list, ",");
    if (end != list && visit(list, end)) {
      return list;
    }
    list = *end == ',' ? end + 1 : end;
  }
  return nullptr;
}

}  // namespace

bool IsLoopback(const Address& address) {
  if (address.is_v4()) {
    return address.ip[12] == 127;
  }
  Address loopback;
  loopback.ip[15] = 1;
  return IsSameIp(address, loopback);
}

bool IsWildcard(const Address& address) {
  const size_t first = address.is_v4() ? 12 : 0;
  return std::all_of(address.ip.begin() + first, address.ip.end(),
                     [](uint8_t byte) { return byte == 0; });
}

bool IsPrivate(const Address& address) {
  const uint8_t* ip = address.ip.data() + 12;
  if (address.is_v4()) {
    return ip[0] == 10 || (ip[0] == 172 && (ip[1] & 0xf0) == 16) ||
           (ip[0] == 192 && ip[1] == 168) || (ip[0] == 100 && (ip[1] & 0xc0) == 64);
  }
  return (address.ip[0] & 0xfe) == 0xfc;
}

bool IsSameIp(const Address& one, const Address& other) { return one.ip == other.ip; }

bool IsInList(const Address& address, const char* list) {
  return FindEntry(list, [&](const char* begin, const char* end) {
           Range range;
           return ParseRange(begin, end, range) && HasPrefix(address, range);
         }) != nullptr;
}

const char* ErrorInList(const char* list) {
  return FindEntry(list, [](const char* begin, const char* end) {
    Range range;
    return !ParseRange(begin, end, range);
  });
}

bool IsRelay(const Address& address, const LocalPlace& place) {
  const Address* end = place.relays + place.relay_count;
  return std::find(place.relays, end, address) != end;
}

bool MayBeRelayed(const Address& destination, const LocalPlace& place, const Rules& rules) {
  if (IsLoopback(destination) || IsWildcard(destination) || destination.port == 0 ||
      IsRelay(destination, place) || IsInList(destination, rules.direct)) {
    return false;
  }
  for (uint32_t i = 0; i < place.relay_count; ++i) {
    if (IsSameIp(destination, place.relays[i])) {
      return true;  // an endpoint at the relay
    }
  }
  return IsPrivate(destination) || IsInList(destination, rules.relayed);
}

bool MayBeDialled(const Address& invited, const char* direct) {
  if (invited.port == 0 || IsLoopback(invited) ||
      IsInList(invited, "0.0.0.0/8,169.254.0.0/16,224.0.0.0/3,::/128,fe80::/10,ff00::/8")) {
    return false;
  }
  return !IsPrivate(invited) || IsInList(invited, direct);
}

bool MayBeKnock(const Address& remote, const Address& local) {
  if (remote.is_v4()) {
    return std::memcmp(remote.ip.data() + 12, kKnockIpV4, 4) == 0;
  }
  return IsLoopback(remote) || IsSameIp(remote, local);  // IPv6 has one loopback address only
}

}  // namespace sekisho::nxproxy::client
