// SPDX-License-Identifier: Apache-2.0
// Tags and keys: docs/protocol/9-pm.md, "Tag and keys".
#include "transport/pm/seal.h"

#include <cstring>
#include <string_view>

#include "transport/pm/little_endian.h"
#include "transport/pm/tag.h"

namespace sekisho::pm {
namespace {

SipKey Derive(const JobKey& key, std::string_view label, const SessionId& id) {
  std::array<std::uint8_t, 12 + 6 + 16> text{};
  std::memcpy(text.data(), label.data(), label.size());
  std::uint8_t* out = text.data() + 12;
  for (const std::uint64_t value : {id.context, id.source, id.destination}) {
    *out++ = static_cast<std::uint8_t>(value);
    *out++ = static_cast<std::uint8_t>(value >> 8);
  }
  for (const std::uint64_t value : {id.source_incarnation, id.destination_incarnation}) {
    for (int i = 0; i < 8; ++i) *out++ = static_cast<std::uint8_t>(value >> 8 * i);
  }
  return SipHash128(SipKeyFrom(std::span(key).first<16>()), text);
}

// Of header and control part.
std::size_t HeadSize(Bytes datagram) { return kHeaderSize + (datagram[16] | datagram[17] << 8); }

}  // namespace

SipKey GreetingKey(const JobKey& key, const SessionId& id) {
  return Derive(key, "pm1 greeting", {id.context, id.source, id.destination, 0, 0});
}

SipKey SessionKey(const JobKey& key, const SessionId& id) { return Derive(key, "pm1 session", id); }

SipKey ClassicKey(const JobKey& key, const SessionId& id) {
  return Derive(key, "pm1 classic", {id.context, id.source, id.destination, 0, 0});
}

std::size_t Seal(const SipKey& key, Cipher* cipher, const PayloadKey* payload_key,
                 MutableBytes datagram, std::size_t size) {
  const std::size_t head = HeadSize(datagram);
  return Seal(key, cipher, payload_key, datagram, size, datagram.subspan(head, size - head));
}

std::size_t Seal(const SipKey& key, Cipher* cipher, const PayloadKey* payload_key,
                 MutableBytes datagram, std::size_t size, Bytes payload) {
  datagram[1] |=
      (payload_key != nullptr ? kFlagPayloadTag : 0) | (cipher != nullptr ? kFlagEncrypted : 0);
  if (cipher != nullptr) {
    const MutableBytes text = datagram.subspan(kHeaderSize, size - kHeaderSize);
    std::uint64_t number = 0;
    for (int i = 0; i < 8; ++i) number |= static_cast<std::uint64_t>(datagram[8 + i]) << 8 * i;
    cipher->Seal(key, number, datagram.first(kHeaderSize), text,
                 datagram.subspan(size).first<kCipherTagSize>());
    return size + kCipherTagSize;
  }
  Store(datagram.data() + size, Tag(key, payload_key, datagram.first(HeadSize(datagram)), payload));
  return size + kTagSize;
}

bool Open(const SipKey& key, Cipher* cipher, const PayloadKey* payload_key, MutableBytes datagram,
          const Packet& packet) {
  const bool encrypted = (packet.header.flags & kFlagEncrypted) != 0;
  if (encrypted != (cipher != nullptr)) return false;
  if (encrypted) {
    return cipher->Open(
        key, packet.header.number, datagram.first(kHeaderSize),
        datagram.subspan(kHeaderSize, packet.control.size() + packet.payload.size()),
        packet.tag.first<kCipherTagSize>());
  }
  const bool payload_tag = (packet.header.flags & kFlagPayloadTag) != 0;
  if (payload_tag && payload_key == nullptr) return false;
  const std::uint64_t tag =
      Tag(key, payload_tag ? payload_key : nullptr, packet.head, packet.payload);
  return packet.tag.size() == kTagSize && Load(packet.tag.data()) == tag;
}

}  // namespace sekisho::pm
