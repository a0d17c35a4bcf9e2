// SPDX-License-Identifier: Apache-2.0
// Tags and keys: docs/protocol/9-pm.md, "Tag and keys".
#pragma once

#include <array>
#include <cstdint>

#include "transport/pm/packet.h"
#include "transport/pm/payload_hash.h"

namespace sekisho::pm {

struct SessionId {
  std::uint16_t context = 0;
  std::uint16_t source = 0;
  std::uint16_t destination = 0;
  std::uint64_t source_incarnation = 0;
  std::uint64_t destination_incarnation = 0;
};

SipKey GreetingKey(const JobKey& key, const SessionId& id);  // incarnations do not enter
SipKey SessionKey(const JobKey& key, const SessionId& id);
SipKey ClassicKey(const JobKey& key, const SessionId& id);

// An AEAD, plugged in by who links a cryptographic library (the fabric: OpenSSL).  Must not throw.
// `session` is the 128-bit key of the session, from which and from the job key it makes its own.
class Cipher {
 public:
  virtual ~Cipher() = default;
  virtual void Seal(const SipKey& session, std::uint64_t nonce, Bytes additional, MutableBytes text,
                    std::span<std::uint8_t, kCipherTagSize> tag) = 0;
  virtual bool Open(const SipKey& session, std::uint64_t nonce, Bytes additional, MutableBytes text,
                    std::span<const std::uint8_t, kCipherTagSize> tag) = 0;
};

// Bytes that Seal appends.
inline std::size_t TagSize(const Cipher* cipher) {
  return cipher != nullptr ? kCipherTagSize : kTagSize;
}

// `datagram` holds header, control and payload, and room for the tag behind `size`.  Adds its flags
// to the header, seals, returns the size with the tag.  Without `payload_key` the tag is of the
// header and the control part only.
std::size_t Seal(const SipKey& key, Cipher* cipher, const PayloadKey* payload_key,
                 MutableBytes datagram, std::size_t size);
// The same with `payload`, the bytes behind the head, read from where they were copied from, if the
// tag covers them.  Who changes them meanwhile has a packet that is not genuine.
std::size_t Seal(const SipKey& key, Cipher* cipher, const PayloadKey* payload_key,
                 MutableBytes datagram, std::size_t size, Bytes payload);

// Whether the packet is genuine.  With a cipher, decrypts it in place inside `datagram`, which it
// was cut from.
bool Open(const SipKey& key, Cipher* cipher, const PayloadKey* payload_key, MutableBytes datagram,
          const Packet& packet);

}  // namespace sekisho::pm
