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

PayloadDigest::PayloadDigest(const PayloadKey& key, Bytes payload) {
  const std::uint64_t length = payload.size();
  while (!payload.empty() && size_ + 24 <= bytes_.size()) {
    const std::size_t size = std::min(payload.size(), kHashBlock);
    const std::size_t whole = size & ~std::size_t{31};
    unsigned __int128 even = 0, odd = 0;
#pragma GCC unroll 2
    for (std::size_t i = 0; i < whole; i += 32) {
      even += Product(payload.data() + i, key.words.data() + i / 8);
      odd += Product(payload.data() + i + 16, key.words.data() + i / 8 + 2);
    }
    if (whole < size) {
      std::array<std::uint8_t, 32> rest{};
      std::memcpy(rest.data(), payload.data() + whole, size - whole);
      even += Product(rest.data(), key.words.data() + whole / 8);
      if (size - whole > 16) odd += Product(rest.data() + 16, key.words.data() + whole / 8 + 2);
    }
    const unsigned __int128 sum = even + odd;
    Store(bytes_.data() + size_, static_cast<std::uint64_t>(sum));
    Store(bytes_.data() + size_ + 8, static_cast<std::uint64_t>(sum >> 64));
    size_ += 16;
    payload = payload.subspan(size);
  }
  Store(bytes_.data() + size_, length);
  size_ += 8;
}

}  // namespace sekisho::pm
