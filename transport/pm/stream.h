// SPDX-License-Identifier: Apache-2.0
// One channel to one peer and one from it: rings of bytes in which messages follow each other.
// docs/protocol/9-pm.md, "Frames".  Pure; rings and pools belong to the endpoint.
#pragma once

#include <array>
#include <cstdint>

#include "transport/pm/memory.h"
#include "transport/pm/packet.h"

namespace sekisho::pm {

inline constexpr std::uint32_t kMessageHeadSize = 8;
inline constexpr std::uint32_t kMessageMax = 1u << 30;
inline constexpr std::uint64_t kMessagesBeforeCredit = 64;

// Whom a message is for: the second word of its head.
enum class MessageKind : std::uint32_t {
  kProgram = 0,
  kRemote = 1,  // remote_memory.h
};

inline std::uint64_t Padded(std::uint64_t length) { return (length + 7) & ~std::uint64_t{7}; }

// Up to two pieces, where a run of bytes wraps around the end of its ring.
struct Pieces {
  Bytes first;
  Bytes second;

  std::size_t size() const { return first.size() + second.size(); }
};

// A place is counted from the ring's beginning, as often around as it takes.
Pieces RingRead(MutableBytes ring, std::uint64_t place, std::size_t length);
void RingWrite(MutableBytes ring, std::uint64_t place, Bytes data);
void RingClear(MutableBytes ring, std::uint64_t place, std::size_t length);

// A part of a stream as it was first put into a packet; cut smaller if the path's MTU shrinks.
struct Segment {
  enum class State : std::uint8_t { kInFlight, kLost, kAcked };

  std::uint64_t offset = 0;
  std::uint64_t last_number = 0;  // packet of its latest transmission
  std::uint32_t length = 0;
  std::uint32_t generation = 0;  // grows when the record is used anew
  std::uint32_t stream = 0;      // index of its SendStream
  std::uint32_t next = kNil;     // in the stream, by offset
  std::uint32_t lost_next = kNil;
  std::uint32_t lost_previous = kNil;
  State state = State::kInFlight;
};

struct SendStream {
  std::uint64_t written = 0;  // end of what the application gave
  std::uint64_t cut = 0;      // end of what was put into segments
  std::uint64_t acked = 0;    // everything below was acknowledged: the ring's tail
  std::uint64_t byte_limit = 0;
  std::uint64_t message_limit = kMessagesBeforeCredit;
  std::uint64_t messages = 0;
  std::uint32_t part_left = 0;  // bytes that Append still owes
  std::uint32_t first = kNil;   // segments
  std::uint32_t last = kNil;
  std::uint32_t base = 0;  // the offset that lies where the ring begins, its low half

  // Appends the head of a message if it and at least `room_for` bytes fit into the ring.
  bool Begin(MutableBytes ring, std::uint32_t length, std::uint64_t room_for);
  // A whole message that fits, in two parts; it is there with one store, or not at all.
  void Put(MutableBytes ring, MessageKind kind, Bytes begin, Bytes end);
  // Takes as much as fits; adds the padding behind the last byte.
  std::uint32_t Append(MutableBytes ring, Bytes data);

  std::uint64_t Place(std::uint64_t offset) const {
    return static_cast<std::uint32_t>(offset) - base;
  }
  // An empty ring is filled from its beginning again: that is in cache.
  void Rewind() {
    if (written == acked) base = static_cast<std::uint32_t>(written);
  }
  std::uint64_t room(std::size_t ring) const { return ring - (written - acked); }
  // Bytes that may be put into packets as far as the receiver's credit goes.
  std::uint64_t sendable() const {
    const std::uint64_t end = written < byte_limit ? written : byte_limit;
    return end > cut ? end - cut : 0;
  }
};

// A run of bytes that arrived above a gap.
struct Interval {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::uint32_t next = kNil;
};

enum class Stored : std::uint8_t { kYes, kNoInterval };

struct ReceiveStream {
  std::uint64_t consumed = 0;    // the ring's tail: everything below was released
  std::uint64_t opened = 0;      // the application holds what lies between
  std::uint64_t contiguous = 0;  // everything below arrived
  std::uint64_t byte_limit = 0;  // promised to the sender
  std::uint64_t message_limit = kMessagesBeforeCredit;
  std::uint64_t messages = 0;     // released
  std::uint32_t interval = kNil;  // first of the runs above contiguous, ascending
  std::uint32_t piece_left = 0;   // of a message that is delivered in pieces
  std::uint32_t ready_next = kNil;
  std::uint32_t ready_previous = kNil;
  bool in_pieces = false;
  bool ready = false;  // in the endpoint's ready list
  bool credit_due = false;
  std::uint32_t base = 0;  // the offset that lies where the ring begins, its low half

  // Stores bytes that lie inside the limit; `fresh` gets the number of bytes not seen before.
  Stored Store(MutableBytes ring, Pool<Interval>& intervals, std::uint64_t offset, Bytes data,
               std::uint64_t& fresh);
  // A run above `contiguous`; false if there is no record for it.
  bool AddInterval(Pool<Interval>& intervals, std::uint64_t low, std::uint64_t high,
                   std::uint64_t& fresh);
  void FreeIntervals(Pool<Interval>& intervals);

  std::uint64_t Place(std::uint64_t offset) const {
    return static_cast<std::uint32_t>(offset) - base;
  }
  // Likewise.
  void Rewind() {
    if (consumed == contiguous && interval == kNil) base = static_cast<std::uint32_t>(contiguous);
  }

  enum class Look : std::uint8_t { kNothing, kMessage, kPiece, kBroken };
  bool is_open() const { return opened != consumed; }
  // What Receive would deliver now, behind what is open.
  Look Peek(MutableBytes ring) const;
  // Whether the next message ends beyond what the sender may send.
  bool Starved(MutableBytes ring) const;
  // After Peek said message or piece: opens it.
  Pieces Open(MutableBytes ring, MessageKind& kind, bool& more);
  // Of the messages that are open, the first; a piece is open alone.  Not beyond `end`: a program
  // that was left behind may read a head that the ring has no more.
  void Release(MutableBytes ring, std::uint64_t end);
};

}  // namespace sekisho::pm
