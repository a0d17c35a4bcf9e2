// SPDX-License-Identifier: Apache-2.0
// See own_time.h.
#include "deploy/wan/own_time.h"

#include <algorithm>

namespace sekisho::wan {
namespace {

constexpr int64_t kLookNs = 1'000;
constexpr int64_t kLongestWriteNs = 20'000;  // longer ones were interrupted

}  // namespace

void OwnTime::Look(int64_t now_ns) {
  looked_ns_ = now_ns;
  ++round_;
}

int64_t OwnTime::ArrivalNs(int host, bool is_next, int64_t now_ns) const {
  if (is_next) return now_ns;
  const Round& last = rounds_[host];
  const int64_t arrival_ns = last.number + 1 == round_ ? last.written_ns : looked_ns_;
  // If the emulator itself stood still meanwhile, it may have come in at any time of that.
  return std::clamp(arrival_ns, now_ns - 2 * lead_ns_ - kLookNs, now_ns);
}

void OwnTime::Wrote(int host, int64_t due_ns, int64_t begin_ns, int64_t end_ns) {
  rounds_[host] = {round_, std::clamp(due_ns, begin_ns, end_ns)};
  // Not the mean: most take as long or longer, so that hardly any packet is there too early.
  const int64_t took_ns = std::min(end_ns - begin_ns, kLongestWriteNs);
  lead_ns_ += took_ns < lead_ns_ ? (took_ns - lead_ns_) / 4 : (took_ns - lead_ns_) / 32;
}

}  // namespace sekisho::wan
