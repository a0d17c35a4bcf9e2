// SPDX-License-Identifier: Apache-2.0
// The tag of a packet: docs/protocol/9-pm.md, "Tag and keys".
#pragma once

#include <algorithm>
#include <cstdint>

#include "transport/pm/payload_hash.h"
#include "transport/pm/siphash.h"

namespace sekisho::pm {

// Of `head`, which is header and control part, and with `payload_key` of the payload, too.
std::uint64_t Tag(const SipKey& key, const PayloadKey* payload_key, Bytes head, Bytes payload);

// What Tag is in the library.  A bench has one of its own, to see what a tag costs.
inline std::uint64_t ComputeTag(const SipKey& key, const PayloadKey* payload_key, Bytes head,
                                Bytes payload) {
  SipHasher hash(key);
  hash.Add(head);
  if (payload_key == nullptr) return hash.Finish();
  const std::uint64_t length = payload.size();
  while (!payload.empty()) {
    const Bytes block = payload.first(std::min(payload.size(), kHashBlock));
    const unsigned __int128 sum = Nh(*payload_key, block);
    hash.Add(static_cast<std::uint64_t>(sum));
    hash.Add(static_cast<std::uint64_t>(sum >> 64));
    payload = payload.subspan(block.size());
  }
  hash.Add(length);  // zeros behind the end count for nothing in the last block
  return hash.Finish();
}

}  // namespace sekisho::pm
