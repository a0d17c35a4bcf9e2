// SPDX-License-Identifier: Apache-2.0
// Alone in its file: who links a Tag of his own does not get this one.
#include "transport/pm/tag.h"

namespace sekisho::pm {

std::uint64_t Tag(const SipKey& key, const PayloadKey* payload_key, Bytes head, Bytes payload) {
  return ComputeTag(key, payload_key, head, payload);
}

}  // namespace sekisho::pm
