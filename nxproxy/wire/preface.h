// SPDX-License-Identifier: Apache-2.0
// The first bytes of a data connection, each way: docs/protocol/10-nxproxy.md.  Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nxproxy/wire/address.h"
#include "nxproxy/wire/error.h"

namespace sekisho::nxproxy::wire {

// A TLS ClientHello begins with kTlsByte, a preface with 'N'; nothing else is legal as first byte.
inline constexpr uint8_t kTlsByte = 0x16;
inline constexpr uint8_t kPrefaceByte = 'N';

inline constexpr size_t kPrefaceFixedBytes = 56;
inline constexpr size_t kTargetBytesMax = 300;
inline constexpr size_t kTagBytes = 32;
inline constexpr size_t kPrefaceBytesMax = kPrefaceFixedBytes + kTargetBytesMax + kTagBytes;
inline constexpr size_t kOpeningBytes = 64;

enum class Kind : uint8_t {
  kConnect = 1,  // to `target`
  kAccept = 2,   // the announced peer `stream`; 0: a spare, for whoever comes next
};

// Client to relay; the ticket is session, counter and tag.  What follows is the stream's own.
struct Preface {
  Kind kind = Kind::kConnect;
  bool wants_opening = false;  // CONNECT: the relay says with an Opening how it went
  uint64_t session = 0;
  uint64_t counter = 0;  // each value once in a session
  uint64_t stream = 0;
  Address from;  // CONNECT: as which address the peer shall see us; unset: our own
  std::string
      target;  // CONNECT: "host:port" of an endpoint, of the upstream relay, or what policy allows

  friend bool operator==(const Preface&, const Preface&) = default;
};

// Everything but the tag; "" if the target is too long.  The tag is HMAC-SHA256 of these bytes with
// the session's key (ticket.h); it follows them.
std::string EncodeUntagged(const Preface& preface);

// The whole preface's length, from its first 8 bytes: nullopt if more bytes are needed, 0 if it is
// none.
std::optional<size_t> PrefaceLength(std::string_view bytes);

struct TaggedPreface {
  Preface preface;
  std::string_view untagged;  // what the tag is over; points into the argument
  std::string_view tag;
};
// Nullopt if broken.  `bytes` is exactly one preface.
std::optional<TaggedPreface> DecodePreface(std::string_view bytes);

// Relay to client, always kOpeningBytes long: on every ACCEPT connection when a peer takes it, on
// CONNECT if asked for.  The stream's own bytes follow.
struct Opening {
  Code code = Code::kOk;
  Address peer;   // who connected; CONNECT: what was connected to
  Address local;  // ACCEPT: the endpoint that he dialled; CONNECT: the relay's own end
  uint64_t endpoint = 0;
  uint64_t stream = 0;

  friend bool operator==(const Opening&, const Opening&) = default;
};
std::string Encode(const Opening& opening);
std::optional<Opening> DecodeOpening(std::string_view bytes);

}  // namespace sekisho::nxproxy::wire
