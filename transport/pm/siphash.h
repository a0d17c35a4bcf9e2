// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 (Aumasson, Bernstein 2012): the keyed hash behind tags, cookies and derived keys. The
// constants are those of the paper and, for 128 bits, of the authors' reference text.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/pm/little_endian.h"

namespace sekisho::pm {

using Bytes = std::span<const std::uint8_t>;
using SipKey = std::array<std::uint64_t, 2>;

SipKey SipKeyFrom(std::span<const std::uint8_t, 16> bytes);

// The hash of all that is added, as if it were one text.  Here, so that who adds keeps the state in
// registers.
class SipHasher {
 public:
  explicit SipHasher(const SipKey& key)
      : v0_(key[0] ^ 0x736f6d6570736575),
        v1_(key[1] ^ 0x646f72616e646f6d),
        v2_(key[0] ^ 0x6c7967656e657261),
        v3_(key[1] ^ 0x7465646279746573) {}

  [[gnu::always_inline]] void Add(Bytes text) {
    const std::uint8_t* at = text.data();
    std::size_t left = text.size();
    if (rest_bits_ == 0) {
      for (; left >= 8; left -= 8, at += 8, size_ += 8) Word(Load(at));
    } else {
      for (; left >= 8; left -= 8, at += 8) Add(Load(at));
    }
    if (left == 0) return;
    std::uint64_t last = 0;
    if (text.size() >= 8) {
      last = Load(at + left - 8) >> (64 - 8 * left);
    } else {
      for (std::size_t i = 0; i < left; ++i) last |= static_cast<std::uint64_t>(at[i]) << 8 * i;
    }
    AddBits(last, static_cast<unsigned>(8 * left));
  }

  // Eight bytes, the least significant first.
  void Add(std::uint64_t word) { AddBits(word, 64); }

  std::uint64_t Finish() { return Finish(0xff); }

  // 128 bits; nothing may have been added before Widen.
  void Widen() { v1_ ^= 0xee; }
  SipKey FinishWide() {
    const std::uint64_t low = Finish(0xee);
    v1_ ^= 0xdd;
    return {low, Mix()};
  }

 private:
  // What came before may have ended inside a word: the value goes on there.
  [[gnu::always_inline]] void AddBits(std::uint64_t value, unsigned bits) {
    size_ += bits / 8;
    rest_ |= value << rest_bits_;
    const unsigned total = rest_bits_ + bits;
    if (total < 64) {
      rest_bits_ = total;
      return;
    }
    Word(rest_);
    rest_ = rest_bits_ == 0 ? 0 : value >> (64 - rest_bits_);
    rest_bits_ = total - 64;
  }

  void Word(std::uint64_t word) {
    v3_ ^= word;
    Round();
    Round();
    v0_ ^= word;
  }

  // The last word has the length in its highest byte.
  std::uint64_t Finish(std::uint64_t mark) {
    Word(rest_ | size_ << 56);
    v2_ ^= mark;
    return Mix();
  }

  std::uint64_t Mix() {
    for (int i = 0; i < 4; ++i) Round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

  void Round() {
    v0_ += v1_, v1_ = std::rotl(v1_, 13) ^ v0_, v0_ = std::rotl(v0_, 32);
    v2_ += v3_, v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_, v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_, v1_ = std::rotl(v1_, 17) ^ v2_, v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
  std::uint64_t rest_ = 0;  // what does not fill a word yet
  unsigned rest_bits_ = 0;
  std::uint64_t size_ = 0;
};

std::uint64_t SipHash(const SipKey& key, Bytes data);

// 128-bit output, used as a PRF for derived keys.
SipKey SipHash128(const SipKey& key, Bytes data);

}  // namespace sekisho::pm
