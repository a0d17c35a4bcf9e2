// SPDX-License-Identifier: Apache-2.0
// Which addresses concern the relay at all: docs/protocol/11-nxproxy-shim.md.  Pure, no allocation:
// asked at every connect of a program under the shim.
#pragma once

#include <optional>

#include "nxproxy/client/local.h"

namespace sekisho::nxproxy::client {

// From where the porter knocks at a program's listener; nobody else uses this address.
inline constexpr uint8_t kKnockIpV4[4] = {127, 83, 75, 1};

bool IsLoopback(const Address& address);
bool IsWildcard(const Address& address);
bool IsPrivate(const Address& address);  // RFC 1918, 6598 and 4193: what two sites may both have
bool IsSameIp(const Address& one, const Address& other);

// "10.0.0.0/8,192.0.2.7,2001:db8::/32"; what cannot be read matches nothing.
bool IsInList(const Address& address, const char* list);

// nullptr if `list` can be read, else where it cannot.
const char* ErrorInList(const char* list);

struct Rules {
  const char* relayed = nullptr;  // $NXPROXY_RELAYED: more than the private addresses
  const char* direct = nullptr;   // $NXPROXY_DIRECT: less than them
};

// Whether the porter must be asked before a connection to `destination`.
bool MayBeRelayed(const Address& destination, const LocalPlace& place, const Rules& rules);

// Whether whoever invites us there is followed.  `direct`: private addresses that count as outside.
bool MayBeDialled(const Address& invited, const char* direct);

// `remote` may be a knock at a listener whose own end is `local`.
bool MayBeKnock(const Address& remote, const Address& local);

bool IsRelay(const Address& address, const LocalPlace& place);

}  // namespace sekisho::nxproxy::client
