// SPDX-License-Identifier: Apache-2.0
// One direction of a link: a queue, a rate, a delay without jitter, random loss.  Pure: times are
// arguments, in nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sekisho::wan {

struct LinkSettings {
  int64_t delay_ns = 0;
  int64_t ps_per_byte = 0;  // 0 = no limit
  int64_t queue_bytes = 0;  // what may wait while the link sends
  double loss = 0;          // probability of each packet, on the wire: it has used up its time
};

// `mbps` of IP packets; 0 = no limit.
int64_t PsPerByte(double mbps);

// Room for what `mbps` sends in `window_us`, at least 64 KiB.
int64_t QueueBytes(double mbps, double window_us);

// The same link in a world that is `factor` times slower.
LinkSettings Dilated(LinkSettings settings, double factor);

struct LinkCounters {
  uint64_t packets = 0;  // that came out at the other end
  uint64_t bytes = 0;
  uint64_t lost = 0;
  uint64_t overflowed = 0;
};

class Link {
 public:
  Link(const LinkSettings& settings, uint64_t seed) : settings_(settings), random_(seed) {}

  enum class Fate { kCarried, kLost, kOverflowed };

  struct Outcome {
    Fate fate;
    int64_t arrival_ns;
  };

  // A packet reaches the link at `now_ns`, which never goes back where the rate is limited.
  Outcome Carry(int64_t now_ns, size_t bytes);

  // What is carried does not depend on what else is.
  bool is_unlimited() const { return settings_.ps_per_byte == 0; }

  const LinkSettings& settings() const { return settings_; }
  const LinkCounters& counters() const { return counters_; }

 private:
  uint64_t NextRandom();

  LinkSettings settings_;
  uint64_t random_;
  int64_t free_ns_ = 0;  // when the last packet taken has been sent
  LinkCounters counters_;
};

}  // namespace sekisho::wan
