// SPDX-License-Identifier: Apache-2.0
// Datagrams that go through memory instead of the socket: docs/protocol/9-pm.md, "Inside a host".
#include <algorithm>

#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

constexpr int kNearInARow = 8;    // without a look at the socket
constexpr int kNearLately = 100;  // looks

}  // namespace

// The rings first: a datagram that found no room there was sent after those that did.
std::size_t Wire::Pull(bool spins) {
  if (has_kept()) {  // the rings were empty when it was awaited
    datagrams_[0] = kept_;
    kept_ = {};
    socket_is_empty_ = false;
    NoteOne();
    return pulled_;
  }
  if (near_ != nullptr && !near_->empty() && near_in_a_row_ < kNearInARow) {
    near_pulled_ = near_->Pull();
    ++near_in_a_row_;
    near_lately_ = near_pulled_.empty() ? std::max(near_lately_ - 1, 0) : kNearLately;
    if (!near_pulled_.empty() || (spins && near_lately_ > 0)) return near_pulled_.size();
  }
  near_in_a_row_ = 0;
  const std::size_t pulled = one_by_one_ ? PullOne() : PullMany();
  socket_is_empty_ = pulled == 0;
  return pulled;
}

void Wire::FeedNear(Endpoint& endpoint, Nanos now) {
  const bool traced = trace_ != nullptr && trace_->IsOn(now);
  for (const NearLinks::Taken& taken : near_pulled_) {
    if (traced) trace_->Write(now, taken.from, false, driver_, taken.bytes);
    endpoint.OnDatagram(taken.from, taken.bytes, false, now);
  }
  near_pulled_ = {};
}

// How many runs are left, in front.
std::size_t Wire::SendNear(const Endpoint& endpoint, std::span<Run> runs) {
  const Nanos now = Now();
  std::size_t left = 0;
  for (Run& run : runs) {
    const std::size_t sent = run.is_probe ? 0  // the socket's way
                                          : near_->Send(endpoint, run.to, run.bytes, run.step, now);
    if (sent == run.bytes.size()) continue;
    run.bytes = run.bytes.subspan(sent);
    run.count -= sent / run.step;  // whole datagrams
    runs[left++] = run;
  }
  return left;
}

}  // namespace sekisho::pm
