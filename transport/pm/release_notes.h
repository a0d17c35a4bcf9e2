// SPDX-License-Identifier: Apache-2.0
// What a program has given back, noted without the word: whoever takes the word acts on the notes
// before anything else.  docs/protocol/9-pm.md, "Two drivers".
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "transport/pm/types.h"

namespace sekisho::pm {

// One writer, the program.  A note that is acted on again, or of a session that is over, does
// nothing.
class ReleaseNotes {
 public:
  static constexpr std::uint32_t kNotes = 32;

  // How many were ever made; it wraps.
  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }

  // All of this channel before `end` is given back.  What was noted kNotes before must be done.
  void Add(NodeId node, ChannelId channel, std::uint32_t session, std::uint64_t end) {
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    Slot& slot = slots_[count % kNotes];
    slot.of.store(0);  // who reads it meanwhile takes neither
    slot.end.store(end);
    slot.of.store(kValid | std::uint64_t{session} << 24 | std::uint64_t{node} << 8 | channel);
    count_.store(count + 1, std::memory_order_release);
  }

  // Those from number `first` on, and at most kNotes; returns how many there were.
  template <typename Endpoint>
  std::uint32_t Apply(Endpoint& endpoint, std::uint32_t first) const {
    const std::uint32_t count = this->count();
    if (count - first > kNotes) first = count - kNotes;
    for (std::uint32_t i = first; i != count; ++i) {
      const Slot& slot = slots_[i % kNotes];
      const std::uint64_t of = slot.of.load();
      const std::uint64_t end = slot.end.load();
      if ((of & kValid) == 0 || slot.of.load() != of) continue;
      endpoint.GiveBack(static_cast<NodeId>(of >> 8), static_cast<ChannelId>(of),
                        static_cast<std::uint32_t>(of >> 24), end);
    }
    return count;
  }

 private:
  static constexpr std::uint64_t kValid = std::uint64_t{1} << 63;

  struct Slot {
    std::atomic<std::uint64_t> of{0}, end{0};
  };

  std::array<Slot, kNotes> slots_;
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace sekisho::pm
