// SPDX-License-Identifier: Apache-2.0
// The tag of a packet: docs/protocol/9-pm.md, "Tag and keys".
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "transport/pm/payload_hash.h"
#include "transport/pm/siphash.h"

namespace sekisho::pm {

// Of `head`, which is header and control part, and with `payload_key` of the payload, too.
std::uint64_t Tag(const SipKey& key, const PayloadKey* payload_key, Bytes head, Bytes payload);

// What Tag is in the library.  A bench has one of its own, to see what a tag costs.
inline std::uint64_t ComputeTag(const SipKey& key, const PayloadKey* payload_key, Bytes head,
                                Bytes payload) {
  constexpr std::size_t kJoint = 256;  // bytes of header, control part and digest
  if (payload_key == nullptr) return SipHash(key, head);
  const PayloadDigest digest(*payload_key, payload);
  if (head.size() + digest.bytes().size() > kJoint) return SipHash(key, head, digest.bytes());
  // One run of words is hashed faster than two.
  std::array<std::uint8_t, kJoint> joint;
  std::memcpy(joint.data(), head.data(), head.size());
  std::memcpy(joint.data() + head.size(), digest.bytes().data(), digest.bytes().size());
  return SipHash(key, Bytes(joint).first(head.size() + digest.bytes().size()));
}

}  // namespace sekisho::pm
