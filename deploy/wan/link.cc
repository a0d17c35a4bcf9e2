// SPDX-License-Identifier: Apache-2.0
// See link.h.
#include "deploy/wan/link.h"

#include <algorithm>
#include <cmath>

namespace sekisho::wan {

int64_t PsPerByte(double mbps) { return mbps > 0 ? std::llround(8e6 / mbps) : 0; }

int64_t QueueBytes(double mbps, double window_us) {
  return std::max<int64_t>(64 << 10, std::llround(mbps / 8 * window_us));
}

LinkSettings Dilated(LinkSettings settings, double factor) {
  settings.delay_ns = std::llround(static_cast<double>(settings.delay_ns) * factor);
  settings.ps_per_byte = std::llround(static_cast<double>(settings.ps_per_byte) * factor);
  return settings;
}

Link::Outcome Link::Carry(int64_t now_ns, size_t bytes) {
  int64_t sent_ns = now_ns;
  if (settings_.ps_per_byte > 0) {
    const int64_t wait_ns = std::max<int64_t>(0, free_ns_ - now_ns);
    if (wait_ns * 1000 / settings_.ps_per_byte > settings_.queue_bytes) {
      ++counters_.overflowed;
      return {Fate::kOverflowed, 0};
    }
    sent_ns = now_ns + wait_ns + static_cast<int64_t>(bytes) * settings_.ps_per_byte / 1000;
    free_ns_ = sent_ns;
  }
  if (settings_.loss > 0 && static_cast<double>(NextRandom() >> 11) * 0x1p-53 < settings_.loss) {
    ++counters_.lost;
    return {Fate::kLost, 0};
  }
  ++counters_.packets;
  counters_.bytes += bytes;
  return {Fate::kCarried, sent_ns + settings_.delay_ns};
}

// splitmix64: any seed is a good one.
uint64_t Link::NextRandom() {
  uint64_t z = (random_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace sekisho::wan
