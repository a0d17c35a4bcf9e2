// SPDX-License-Identifier: Apache-2.0
// 64-bit words of hashes, least significant byte first on every machine.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace sekisho::pm {

inline std::uint64_t Load(const std::uint8_t* bytes) {
  std::uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  return value;
}

inline void Store(std::uint8_t* out, std::uint64_t value) {
  if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
  std::memcpy(out, &value, sizeof value);
}

}  // namespace sekisho::pm
