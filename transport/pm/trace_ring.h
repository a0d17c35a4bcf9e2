// SPDX-License-Identifier: Apache-2.0
// The latest datagrams of a context, in its memory, while somebody asks for them:
// docs/protocol/9-pm.md, "Trace".
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "transport/pm/hand_over.h"
#include "transport/pm/types.h"

namespace sekisho::pm {

struct TracedDatagram {
  static constexpr std::size_t kBytes = 9176;

  Nanos time = 0;
  Address remote;
  bool sent = false;  // else received
  Side driver = Side::kNone;
  std::uint32_t size = 0;  // of the datagram, which may be longer than what is kept of it
  std::array<std::uint8_t, kBytes> bytes;

  Bytes kept() const { return {bytes.data(), std::min<std::size_t>(size, kBytes)}; }
};

// All zeros is an empty one, so that its pages stay untouched.  Any number of writers in any
// process: one that was left behind may still write, and each may be killed.  A writer that stood
// still inside Write while kSlots others came writes into a slot that is whole again, and spoils
// it.
class TraceRing {
 public:
  static constexpr std::uint64_t kSlots = 2048;

  // Until then: who asks says so again and again, and need not say when it ends.
  void Ask(Nanos until) { until_.store(until, std::memory_order_relaxed); }
  Nanos until() const { return until_.load(std::memory_order_relaxed); }
  bool asked() const { return until_.load(std::memory_order_relaxed) != 0; }
  bool IsOn(Nanos now) const { return now < until_.load(std::memory_order_relaxed); }

  void Write(Nanos time, const Address& remote, bool sent, Side driver, Bytes datagram);

  std::uint64_t next() const { return next_.load(std::memory_order_acquire); }
  enum class Found : std::uint8_t { kWhole, kUnfinished, kOverwritten };
  Found Read(std::uint64_t ticket, TracedDatagram& datagram) const;

 private:
  static constexpr std::size_t kHeadWords = 4;  // time, size and marks, remote IP
  struct Slot {
    std::atomic<std::uint64_t> ticket;  // one more than it, once all words are written; else 0
    std::array<std::atomic<std::uint64_t>, kHeadWords + TracedDatagram::kBytes / 8> words;
  };
  static_assert(sizeof(Slot) == 9216);

  alignas(64) std::atomic<std::int64_t> until_;
  alignas(64) std::atomic<std::uint64_t> next_;
  alignas(64) std::array<Slot, kSlots> slots_;
};

// Follows a ring from now on, and from its beginning if somebody empties it meanwhile.
class TraceReader {
 public:
  explicit TraceReader(const TraceRing& ring) : ring_(ring), next_(ring.next()) {}

  // False: no more for now.  One that is being written is waited for, and skipped, as lost, if its
  // writer has not ended it kWriting later: he is dead or stopped.  kNever: is not waited for.
  static constexpr Nanos kWriting = 100'000'000;
  bool Next(TracedDatagram& datagram, Nanos now);
  std::uint64_t lost() const { return lost_; }

 private:
  const TraceRing& ring_;
  std::uint64_t next_;
  std::uint64_t lost_ = 0;
  std::uint64_t waited_for_ = UINT64_MAX;  // unfinished
  Nanos since_ = 0;                        // when we saw that first
};

}  // namespace sekisho::pm
