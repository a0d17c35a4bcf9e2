// SPDX-License-Identifier: Apache-2.0
// What nodes say to each other about remote memory: docs/protocol/9-pm.md, "Remote memory".  Pure.
#pragma once

#include <array>
#include <cstdint>

#include "transport/pm/stream.h"

namespace sekisho::pm {

inline constexpr std::size_t kRemoteHeadSize = 64;
inline constexpr std::size_t kRemoteChunk = 16 * 1024;  // most bytes behind one head

enum class RemoteWhat : std::uint8_t {
  kWrite = 1,    // bytes for a region
  kOffer = 2,    // bytes for a region that lie in a process of this host
  kRead = 3,     // a part of a region is wanted
  kDone = 4,     // a write or an offer is in place
  kRefused = 5,  // there is no such region for you
  kResend = 6,   // an offer could not be copied: write it
  kData = 7,     // bytes that were wanted
  kNear = 8,     // where they lie in a process of this host
  kGot = 9,      // and were copied from
};

// A place in a process of this host, and where that process keeps the secret that it was told.
struct NearPlace {
  std::uint32_t process = 0;
  std::uint64_t address = 0;
  std::uint64_t proof = 0;

  bool operator==(const NearPlace&) const = default;
};

struct RemoteMessage {
  RemoteWhat what = RemoteWhat::kWrite;
  bool last = false;            // kWrite, kData: nothing of this operation follows
  bool near = false;            // kRead: may be answered with kNear
  std::uint32_t operation = 0;  // the initiator's number
  std::uint32_t region = 0;
  std::uint64_t key = 0;     // of the region
  std::uint64_t offset = 0;  // in the region; of kData: in what was asked for
  std::uint64_t length = 0;  // of kWrite and kData: of the bytes behind the head
  NearPlace place;           // kOffer, kNear
  std::uint64_t token = 0;   // kRead that may be answered with kNear: what the proof must be

  bool operator==(const RemoteMessage&) const = default;
};

// What an initiator shows who copies for it from this host.  Not the key itself: every user of a
// region has that somewhere, also one in whose name another speaks.
std::uint64_t NearProof(std::uint64_t key, NodeId initiator);

using RemoteHead = std::array<std::uint8_t, kRemoteHeadSize>;

RemoteHead WriteRemoteHead(const RemoteMessage& message);
// False: not what WriteRemoteHead writes, or another length than it says.  `body` gets what follows
// the head.
bool ParseRemoteMessage(const Pieces& bytes, RemoteMessage& message, Pieces& body);

}  // namespace sekisho::pm
