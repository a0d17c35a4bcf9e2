// SPDX-License-Identifier: Apache-2.0
// NH over blocks of 1024 bytes.
#include "transport/pm/payload_hash.h"

#include <algorithm>
#include <cstring>

#include "transport/pm/little_endian.h"

namespace sekisho::pm {
namespace {

unsigned __int128 Product(const std::uint8_t* text, const std::uint64_t* key) {
  const std::uint64_t a = Load(text) + key[0], b = Load(text + 8) + key[1];
  return static_cast<unsigned __int128>(a) * b;
}

// Four sums, for each addition waits for the one before.
unsigned __int128 Sum(const std::uint8_t* text, const std::uint64_t* key, std::size_t size) {
  unsigned __int128 a = 0, b = 0, c = 0, d = 0;
  for (; size >= 64; text += 64, key += 8, size -= 64) {
    a += Product(text, key);
    b += Product(text + 16, key + 2);
    c += Product(text + 32, key + 4);
    d += Product(text + 48, key + 6);
  }
  for (; size >= 16; text += 16, key += 2, size -= 16) a += Product(text, key);
  if (size > 0) {
    std::array<std::uint8_t, 16> rest{};
    std::memcpy(rest.data(), text, size);
    b += Product(rest.data(), key);
  }
  return a + b + c + d;
}

}  // namespace

PayloadKey MakePayloadKey(const JobKey& key) {
  PayloadKey out;
  std::array<std::uint8_t, 12> text = {'p', 'm', '1', ' ', 'p', 'a', 'y', 'l', 'o', 'a', 'd', 0};
  const SipKey master = SipKeyFrom(std::span(key).first<16>());
  for (std::size_t i = 0; i < out.words.size(); i += 2) {
    text[11] = static_cast<std::uint8_t>(i / 2);
    const SipKey part = SipHash128(master, text);
    out.words[i] = part[0];
    out.words[i + 1] = part[1];
  }
  return out;
}

unsigned __int128 Nh(const PayloadKey& key, Bytes block) {
  return Sum(block.data(), key.words.data(), std::min(block.size(), kHashBlock));
}

}  // namespace sekisho::pm
