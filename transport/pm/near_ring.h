// SPDX-License-Identifier: Apache-2.0
// Datagrams from one process to another of this host while the other polls: docs/protocol/9-pm.md,
// "Inside a host".  One writer, one reader, and neither believes what the other wrote.  Pure: what
// it is made of is a template parameter, so that near_ring_test.cc runs this very code through
// every interleaving.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sekisho::pm {

// `Parts` has a type Slot with a `state`, 0 when made, a type Lease, both atomic words, and kSlots.
// The reader polls until the time in the lease and keeps moving it on; before it sleeps it stores 0
// there and then reads once more.  The writer stores a state and then looks at the lease.  These
// four are sequentially consistent: either the one or the other sees it.
template <typename Parts>
class NearWriter {
 public:
  using Slot = typename Parts::Slot;

  NearWriter(Slot* slots, const typename Parts::Lease& lease) : slots_(slots), lease_(lease) {}

  // What lies too far ahead is not meant seriously, or told by another clock.
  bool MayWrite(std::int64_t now) const {
    const std::int64_t until = lease_.load();
    return until > now && until - now < Parts::kLeaseMost;
  }

  // False: full.  `fill` writes into the slot; the reader sees it when all of it is written.
  template <typename Fill>
  bool Write(Fill fill) {
    Slot& slot = slots_[next_ % Parts::kSlots];
    if (slot.state.load(std::memory_order_acquire) != 0) return false;
    fill(slot);
    slot.state.store(++serial_);
    ++next_;
    ++unsettled_;
    return true;
  }

  // After some of Write: how many of the last of them were taken back, since the reader may not
  // look any more.  Each of the others was read, or will be before the reader sleeps.
  std::size_t Settle(std::int64_t now) {
    std::size_t taken_back = 0;
    if (!MayWrite(now)) {
      for (; taken_back < unsettled_; ++taken_back) {
        std::uint64_t expected = serial_ - taken_back;
        Slot& slot = slots_[(next_ - 1) % Parts::kSlots];
        // It was read, and so were those before.
        if (!slot.state.compare_exchange_strong(expected, 0)) break;
        --next_;
      }
    }
    unsettled_ = 0;
    return taken_back;
  }

 private:
  Slot* slots_;
  const typename Parts::Lease& lease_;
  std::uint64_t next_ = 0;
  std::uint64_t serial_ = 0;  // never the same twice: a slot may be taken back and written anew
  std::size_t unsettled_ = 0;
};

template <typename Parts>
class NearReader {
 public:
  using Slot = typename Parts::Slot;

  explicit NearReader(Slot* slots) : slots_(slots) {}

  bool HasAny() const { return slots_[next_ % Parts::kSlots].state.load() != 0; }

  // False: nothing is there, and what `take` copied, if it was called, counts for nothing.
  template <typename Take>
  bool Read(Take take) {
    Slot& slot = slots_[next_ % Parts::kSlots];
    std::uint64_t seen = slot.state.load();
    if (seen == 0) return false;
    take(slot);
    if (!slot.state.compare_exchange_strong(seen, 0)) return false;  // taken back meanwhile
    ++next_;
    return true;
  }

 private:
  Slot* slots_;
  std::uint64_t next_ = 0;
};

}  // namespace sekisho::pm
