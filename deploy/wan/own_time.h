// SPDX-License-Identifier: Apache-2.0
// What the emulator takes itself, which is none of the network's time: when a packet that is being
// read came in, and how long before its time one must be written.  Never more than it surely was:
// who looks for the shortest round trip must not find a shorter one.  Pure; times in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sekisho::wan {

class OwnTime {
 public:
  explicit OwnTime(size_t hosts) : rounds_(hosts) {}

  // The emulator begins to look for packets.
  void Look(int64_t now_ns);

  // When the packet that it has read from the host's device just now came in.  `is_next`: behind
  // another of the same look, so it may have come in the meantime.
  int64_t ArrivalNs(int host, bool is_next, int64_t now_ns) const;

  // So long before it is due a packet is to be written.
  int64_t lead_ns() const { return lead_ns_; }

  // A packet that was due at `due_ns` was written to the host's device.  What the host's kernel
  // answers at once comes in while it is being written.
  void Wrote(int host, int64_t due_ns, int64_t begin_ns, int64_t end_ns);

 private:
  struct Round {
    uint64_t number = 0;
    int64_t written_ns = 0;
  };

  uint64_t round_ = 1;
  int64_t looked_ns_ = 0;
  int64_t lead_ns_ = 0;
  std::vector<Round> rounds_;  // of each host, in which something was written to it last
};

}  // namespace sekisho::wan
