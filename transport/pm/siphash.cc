// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 of one text.
#include "transport/pm/siphash.h"

namespace sekisho::pm {

SipKey SipKeyFrom(std::span<const std::uint8_t, 16> bytes) {
  return {Load(bytes.data()), Load(bytes.data() + 8)};
}

std::uint64_t SipHash(const SipKey& key, Bytes data) {
  SipHasher hash(key);
  hash.Add(data);
  return hash.Finish();
}

SipKey SipHash128(const SipKey& key, Bytes data) {
  SipHasher hash(key);
  hash.Widen();
  hash.Add(data);
  return hash.FinishWide();
}

}  // namespace sekisho::pm
