// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4; the constants are those of the paper and, for 128 bits, of the authors' reference
// text.
#include "transport/pm/siphash.h"

#include <cstring>

#include "transport/pm/little_endian.h"

namespace sekisho::pm {
namespace {

class State {
 public:
  State(const SipKey& key, bool wide)
      : v0_(key[0] ^ 0x736f6d6570736575),
        v1_(key[1] ^ 0x646f72616e646f6d),
        v2_(key[0] ^ 0x6c7967656e657261),
        v3_(key[1] ^ 0x7465646279746573) {
    if (wide) v1_ ^= 0xee;
  }

  void Word(std::uint64_t word) {
    v3_ ^= word;
    Round();
    Round();
    v0_ ^= word;
  }

  std::uint64_t Finish(std::uint64_t mark) {
    v2_ ^= mark;
    for (int i = 0; i < 4; ++i) Round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

  std::uint64_t Second() {
    v1_ ^= 0xdd;
    for (int i = 0; i < 4; ++i) Round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void Round() {
    v0_ += v1_, v1_ = std::rotl(v1_, 13) ^ v0_, v0_ = std::rotl(v0_, 32);
    v2_ += v3_, v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_, v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_, v1_ = std::rotl(v1_, 17) ^ v2_, v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_;
};

// All words, and the last word with the length in its highest byte.  Inlined, so that the state
// stays in registers.
[[gnu::always_inline]] inline void Absorb(State& state, Bytes data) {
  const std::uint8_t* at = data.data();
  std::size_t left = data.size();
  for (; left >= 8; left -= 8, at += 8) state.Word(Load(at));
  std::uint64_t last = static_cast<std::uint64_t>(data.size()) << 56;
  for (std::size_t i = 0; i < left; ++i) last |= static_cast<std::uint64_t>(at[i]) << 8 * i;
  state.Word(last);
}

// The same of first and second, and the last word with the length in its highest byte.
void Absorb(State& state, Bytes first, Bytes second) {
  const std::uint64_t total = first.size() + second.size();
  while (first.size() >= 8) {
    state.Word(Load(first.data()));
    first = first.subspan(8);
  }
  std::uint8_t joint[8] = {};
  std::size_t filled = first.size();
  if (filled > 0) {
    std::memcpy(joint, first.data(), filled);
    if (filled + second.size() >= 8) {
      std::memcpy(joint + filled, second.data(), 8 - filled);
      state.Word(Load(joint));
      second = second.subspan(8 - filled);
      filled = 0;
      std::memset(joint, 0, sizeof joint);
    }
  }
  if (filled == 0) {
    while (second.size() >= 8) {
      state.Word(Load(second.data()));
      second = second.subspan(8);
    }
  }
  if (!second.empty()) std::memcpy(joint + filled, second.data(), second.size());
  state.Word(Load(joint) | total << 56);
}

}  // namespace

SipKey SipKeyFrom(std::span<const std::uint8_t, 16> bytes) {
  return {Load(bytes.data()), Load(bytes.data() + 8)};
}

std::uint64_t SipHash(const SipKey& key, Bytes data) {
  State state(key, false);
  Absorb(state, data);
  return state.Finish(0xff);
}

std::uint64_t SipHash(const SipKey& key, Bytes first, Bytes second) {
  State state(key, false);
  Absorb(state, first, second);
  return state.Finish(0xff);
}

SipKey SipHash128(const SipKey& key, Bytes data) {
  State state(key, true);
  Absorb(state, data);
  const std::uint64_t low = state.Finish(0xee);
  return {low, state.Second()};
}

}  // namespace sekisho::pm
