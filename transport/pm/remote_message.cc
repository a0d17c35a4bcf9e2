// SPDX-License-Identifier: Apache-2.0
// What nodes say to each other about remote memory.
#include "transport/pm/remote_message.h"

#include <algorithm>
#include <cstring>

#include "transport/pm/little_endian.h"
#include "transport/pm/siphash.h"

namespace sekisho::pm {
namespace {

constexpr std::uint8_t kLast = 1, kMayBeNear = 2;

// The bytes of `all` from `at` on.
Pieces Behind(const Pieces& all, std::size_t at) {
  if (at <= all.first.size()) return {all.first.subspan(at), all.second};
  return {all.second.subspan(at - all.first.size()), {}};
}

}  // namespace

std::uint64_t NearProof(std::uint64_t key, NodeId initiator) {
  const std::array<std::uint8_t, 2> node = {static_cast<std::uint8_t>(initiator),
                                            static_cast<std::uint8_t>(initiator >> 8)};
  return SipHash({key, 0x6e656172}, node);
}

RemoteHead WriteRemoteHead(const RemoteMessage& message) {
  RemoteHead head;
  const std::uint64_t flags = (message.last ? kLast : 0) | (message.near ? kMayBeNear : 0);
  Store(&head[0], static_cast<std::uint64_t>(message.what) | flags << 8 |
                      std::uint64_t{message.operation} << 32);
  Store(&head[8], message.region | std::uint64_t{message.place.process} << 32);
  Store(&head[16], message.key);
  Store(&head[24], message.offset);
  Store(&head[32], message.length);
  Store(&head[40], message.place.address);
  Store(&head[48], message.place.proof);
  Store(&head[56], message.token);
  return head;
}

bool ParseRemoteMessage(const Pieces& bytes, RemoteMessage& message, Pieces& body) {
  if (bytes.size() < kRemoteHeadSize) return false;
  RemoteHead head;
  const std::size_t first = std::min(bytes.first.size(), head.size());
  std::memcpy(head.data(), bytes.first.data(), first);
  if (first < head.size()) {
    std::memcpy(head.data() + first, bytes.second.data(), head.size() - first);
  }
  if (head[0] < static_cast<std::uint8_t>(RemoteWhat::kWrite) ||
      head[0] > static_cast<std::uint8_t>(RemoteWhat::kGot)) {
    return false;
  }
  message.what = static_cast<RemoteWhat>(head[0]);
  message.last = (head[1] & kLast) != 0;
  message.near = (head[1] & kMayBeNear) != 0;
  message.operation = static_cast<std::uint32_t>(Load(&head[0]) >> 32);
  message.region = static_cast<std::uint32_t>(Load(&head[8]));
  message.place.process = static_cast<std::uint32_t>(Load(&head[8]) >> 32);
  message.key = Load(&head[16]);
  message.offset = Load(&head[24]);
  message.length = Load(&head[32]);
  message.place.address = Load(&head[40]);
  message.place.proof = Load(&head[48]);
  message.token = Load(&head[56]);
  if (WriteRemoteHead(message) != head) return false;  // bits that mean nothing
  body = Behind(bytes, kRemoteHeadSize);
  const bool carries = message.what == RemoteWhat::kWrite || message.what == RemoteWhat::kData;
  return carries ? body.size() == message.length && body.size() <= kRemoteChunk : body.size() == 0;
}

}  // namespace sekisho::pm
