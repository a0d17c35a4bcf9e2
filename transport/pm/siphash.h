// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 (Aumasson, Bernstein 2012): the keyed hash behind tags, cookies and derived keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sekisho::pm {

using Bytes = std::span<const std::uint8_t>;
using SipKey = std::array<std::uint64_t, 2>;

SipKey SipKeyFrom(std::span<const std::uint8_t, 16> bytes);

// 64-bit output, of one or of two buffers in a row (as if they were one).
std::uint64_t SipHash(const SipKey& key, Bytes data);
std::uint64_t SipHash(const SipKey& key, Bytes first, Bytes second);

// 128-bit output, used as a PRF for derived keys.
SipKey SipHash128(const SipKey& key, Bytes data);

}  // namespace sekisho::pm
