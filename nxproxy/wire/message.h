// SPDX-License-Identifier: Apache-2.0
// Messages of the control connection and their frames: docs/protocol/10-nxproxy.md.  Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nxproxy/wire/error.h"

namespace sekisho::nxproxy::wire {

inline constexpr uint8_t kVersion = 1;
inline constexpr size_t kHeaderBytes = 8;
inline constexpr size_t kBodyBytesMax = 60 * 1024;
inline constexpr size_t kSecretBytes = 32;

enum class Verb : uint8_t {
  // Client to relay.
  kHello = 1,
  kBind = 2,
  kUnbind = 3,
  kResolve = 4,
  kReject = 5,
  kInvite = 6,
  kPing = 7,
  kStats = 8,
  kBye = 9,
  // Relay to client.
  kWelcome = 65,
  kBound = 66,
  kDone = 67,
  kResolved = 68,
  kAnnounce = 69,
  kInvited = 70,
  kPong = 71,
  kReport = 72,
  kFailed = 73,
  kError = 74,
  kDrain = 75,
};

const char* Name(Verb verb);  // "BIND"; "?" if unknown

enum class Scope : uint8_t { kNone = 0, kJob = 1, kPublic = 2 };

// One message.  A field of 0 or "" is absent: it is not sent.  Which verb needs which: message.cc.
struct Message {
  Verb verb = Verb::kPing;
  uint32_t id = 0;  // chosen by who asks, repeated by who answers; 0: unasked

  uint64_t version = 0;   // HELLO, WELCOME
  uint64_t session = 0;   // HELLO (to resume), WELCOME
  std::string key;        // WELCOME, and HELLO to resume: the session's key, 32 bytes
  std::string token;      // HELLO: a job token's text
  std::string program;    // HELLO: who speaks, for the log
  uint64_t hops = 0;      // HELLO: relays between this one and the client
  uint64_t scope = 0;     // BIND, BOUND, RESOLVED: Scope
  uint64_t port = 0;      // BIND: wanted, or the range's first
  uint64_t port_max = 0;  // BIND: the range's last
  uint64_t endpoint = 0;  // BIND (to take back), BOUND, UNBIND, ANNOUNCE, RESOLVED, INVITE
  std::string secret;     // BIND, BOUND: 32 bytes
  std::string
      address;         // BOUND, RESOLVE: the endpoint's; ANNOUNCE: the peer's; INVITE: whom to dial
  std::string inside;  // BIND, RESOLVED: where it listens inside
  uint64_t stream = 0;       // ANNOUNCE, REJECT, FAILED
  uint64_t code = 0;         // ERROR, FAILED, REJECT: Code
  std::string words;         // ERROR, FAILED, DRAIN: what was expected and seen
  std::string remedy;        // ERROR, FAILED
  std::string rule;          // ERROR, FAILED: the policy's rule, or ""
  std::string site;          // WELCOME, RESOLVED
  std::string job;           // WELCOME, RESOLVED
  std::string owner;         // WELCOME: who the relay takes the client for; RESOLVED
  uint64_t heartbeat_s = 0;  // WELCOME: ping at least so often
  uint64_t grace_s = 0;      // WELCOME: endpoints survive so long without a control connection
  uint64_t spares = 0;       // WELCOME: how many spare connections the relay keeps for a session
  std::string upstream;      // WELCOME: endpoints live at that relay; reach it through this one
  uint64_t encrypt =
      0;              // WELCOME: 1, the site demands it; BIND, RESOLVED: 1, the endpoint speaks it
  std::string label;  // BIND, RESOLVED to its own: whose it is; shown in listings
  uint64_t backlog = 0;  // BIND: peers that may wait
  uint64_t counter = 0;  // FAILED: of the ticket
  std::string text;      // REPORT: JSON
  std::string cookie;    // INVITE, INVITED: 16..64 bytes, handed through
  std::string allow;     // BIND: "192.0.2.0/24,2001:db8::/32", peers that may connect; absent: any
  uint64_t others = 0;   // RESOLVE: so many more of the job's addresses are welcome
  std::string place;     // RESOLVED, unasked: the address inside that it answers

  friend bool operator==(const Message&, const Message&) = default;
};

// The frame's bytes.  "" if a field is longer than the protocol allows.
std::string Encode(const Message& message);

// What a frame holds.  kProtocol: broken, a field missing or of a wrong size; kVersion: another
// version.
struct Decoded {
  Code code = Code::kOk;
  std::string why;  // for the log, if not kOk
  Message message;  // if kOk; verb and id as far as they could be read
};
Decoded Decode(std::string_view frame);  // header and body, nothing behind

// The length of the frame that `bytes` begin with: nullopt if more bytes are needed to know, 0 if
// it can be no frame.  `bytes` may hold less than the frame, or more.
std::optional<size_t> FrameLength(std::string_view bytes);

// An error's answer.
Message ErrorMessage(uint32_t id, Code code, std::string words, std::string rule = "");

}  // namespace sekisho::nxproxy::wire
