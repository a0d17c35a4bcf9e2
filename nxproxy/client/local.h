// SPDX-License-Identifier: Apache-2.0
// What a shim asks its porter, on one host: docs/protocol/11-nxproxy-shim.md.  One question and one
// answer per Unix connection, no allocation, safe in a signal handler and between fork and exec.
#pragma once

#include <cstdint>

#include <sys/socket.h>
#include <sys/types.h>

#include "nxproxy/wire/address.h"

namespace sekisho::nxproxy::client {

using wire::Address;

inline constexpr uint32_t kLocalVersion = 0x4e584c31;  // "NXL1"
inline constexpr size_t kLocalKeyBytes = 16;
inline constexpr size_t kLocalPrefaceMax = 400;
inline constexpr size_t kLocalTextMax = 240;

enum class LocalVerb : uint32_t {
  kListen = 1,   // `inode` listens at `local`
  kReserve = 2,  // `inode` is bound to `local` and wants its public address before it listens
  kConnect = 3,  // may I connect to `remote`, and how?
  kDialled = 4,  // I did: `local` -> `remote` (the relay) stands for a connection to `peer`
  kClaim = 5,    // `remote` knocked at my listener `local`: who is it?
  kName = 6,     // whom does my connection `local` -> `remote` stand for?
  kAddress = 7,  // which public address has my listener `local`?
};

enum LocalFlags : uint32_t {
  kIsV6 = 1,            // the socket is of family AF_INET6
  kIsV6Only = 2,        // and takes no IPv4
  kIsExplicit = 4,      // by name (the library), not by a rule
  kIsPublic = 8,        // scope, if kIsExplicit
  kIsReplaceable = 16,  // kConnect: another socket may take its number
  kIsTold = 32,         // kConnect: it is direct whatever the answer is, and only to be recorded
};

struct LocalRequest {
  uint32_t version = kLocalVersion;
  LocalVerb verb{};
  uint8_t key[kLocalKeyBytes] = {};
  uint64_t inode = 0;
  Address local;
  Address remote;
  Address peer;
  uint32_t flags = 0;
  int32_t backlog = 0;
  uint32_t port = 0;  // kReserve, kIsExplicit: wanted at the relay
};

enum class LocalAnswer : uint32_t {
  kPass = 1,     // nothing of ours: do as if there were no shim
  kDial = 2,     // connect to `address`, then write `preface`
  kStream = 3,   // the descriptor that comes along is the connection; `peer` is at the other end
  kKnown = 4,    // `peer` and `self` are what the program shall see
  kRefused = 5,  // `error`
};

struct LocalReply {
  uint32_t version = kLocalVersion;
  LocalAnswer answer = LocalAnswer::kPass;
  int32_t error = 0;
  uint32_t preface_bytes = 0;  // kDial: none means an ordinary connection to `address`
  uint32_t flags = 0;          // kKnown: kIsV6 is the family that the program expects
  Address address;
  Address peer;
  Address self;
  char preface[kLocalPrefaceMax] = {};
  char text[kLocalTextMax] = {};  // for nxproxy_strerror
};

// Where the porter is, from $NXPROXY_PORTER: "NAME:UID:KEY:RELAY[,RELAY][;PORT]", NAME of an abstract
// Unix socket, UID the porter's user, KEY in hexadecimal, RELAY the address that relayed connections
// seem to lead to, PORT where reversed ones come in.
struct LocalPlace {
  char name[64] = {};
  uid_t uid = 0;
  uint8_t key[kLocalKeyBytes] = {};
  Address relays[4];
  uint32_t relay_count = 0;
  uint16_t reversed_port = 0;
};
bool ParsePlace(const char* text, LocalPlace& place);

// Asks; false if no porter answers.  Somebody else who has the porter's name is told nothing: the
// answer is then kRefused, in words.  `fd` is the descriptor of a kStream, or -1.  Leaves errno alone.
bool Ask(const LocalPlace& place, LocalRequest& request, LocalReply& reply, int& fd);

// Whether `seen`, a user as our namespace shows him, is `expected`, as written here or in the
// namespace around ours.  `uid_map`: /proc/self/uid_map.
bool IsSameUser(uid_t seen, uid_t expected, const char* uid_map);

// The name of an abstract socket.
socklen_t AbstractAddress(const char* name, sockaddr_storage& out);

}  // namespace sekisho::nxproxy::client
