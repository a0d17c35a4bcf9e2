// SPDX-License-Identifier: Apache-2.0
// What of a payload enters a packet's tag: NH (Black, Halevi, Krawczyk, Krovetz, Rogaway 1999), a
// universal hash of one multiplication for 16 bytes.  docs/protocol/9-pm.md, "Tag and keys".
#pragma once

#include <array>
#include <cstdint>

#include "transport/pm/siphash.h"

namespace sekisho::pm {

using JobKey = std::array<std::uint8_t, 32>;

inline constexpr std::size_t kHashBlock = 1024;  // bytes

struct PayloadKey {
  std::array<std::uint64_t, kHashBlock / 8> words;
};

PayloadKey MakePayloadKey(const JobKey& key);

// Of a block of kHashBlock bytes or fewer.  For who does not know the key two different blocks of
// one length have the same with a chance of 2^-64.
unsigned __int128 Nh(const PayloadKey& key, Bytes block);

}  // namespace sekisho::pm
