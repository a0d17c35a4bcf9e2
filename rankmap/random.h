// SPDX-License-Identifier: Apache-2.0
// Seeded randomness and logarithms that give the same bits on every machine: no std distributions,
// no library logarithm (both may differ between versions).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <utility>

namespace sekisho::rankmap {

// xoshiro256**, seeded by splitmix64.  The state is four words, copied into checkpoints.
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }

  uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // From 0 to bound - 1; bound > 0.
  uint32_t Below(uint32_t bound) {
    return static_cast<uint32_t>(((Next() >> 32) * static_cast<uint64_t>(bound)) >> 32);
  }

  // In [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  template <typename Vector>
  void Shuffle(Vector& values) {
    for (uint32_t i = static_cast<uint32_t>(values.size()); i > 1; --i) {
      std::swap(values[i - 1], values[Below(i)]);
    }
  }

  const std::array<uint64_t, 4>& state() const { return state_; }
  void set_state(const std::array<uint64_t, 4>& state) { state_ = state; }

 private:
  std::array<uint64_t, 4> state_{};
};

// The natural logarithm by basic arithmetic only; x > 0.
inline double Ln(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double s2 = s * s;
  double sum = 0.0;
  for (int k = 23; k >= 1; k -= 2) {
    sum = sum * s2 + 1.0 / k;
  }
  return 2.0 * s * sum + exponent * 0.6931471805599453;
}

// e to the x, |x| < 700, by basic arithmetic only.
inline double Exp(double x) {
  const double scaled = x * 1.4426950408889634;
  const int whole = static_cast<int>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double rest = x - whole * 0.6931471805599453;
  double sum = 1.0;
  for (int k = 16; k >= 1; --k) {
    sum = 1.0 + sum * rest / k;
  }
  return sum * std::bit_cast<double>(static_cast<uint64_t>(whole + 1023) << 52);
}

// Exponential variates (mean 1) by table: 4096 quantiles are plenty for accepting moves.
class ExponentialTable {
 public:
  ExponentialTable() {
    for (int i = 0; i < kSize; ++i) {
      values_[i] = -Ln((i + 0.5) / kSize);
    }
  }
  double Draw(Random& random) const { return values_[random.Next() >> 52]; }

 private:
  static constexpr int kSize = 4096;
  std::array<double, kSize> values_;
};

}  // namespace sekisho::rankmap
