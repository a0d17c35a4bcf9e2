// SPDX-License-Identifier: Apache-2.0
// A network in virtual time that loses, repeats, reorders, garbles and delays; everything follows
// from one seed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "transport/pm/types.h"

namespace sekisho::pm::sim {

// splitmix64: small, and the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // low and high included.
  std::int64_t In(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(Next() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool Chance(double probability) {
    return static_cast<double>(Next() >> 11) * 0x1p-53 < probability;
  }

 private:
  std::uint64_t state_;
};

struct Link {
  Nanos delay = 25 * kMicrosecond;
  Nanos jitter = 5 * kMicrosecond;
  double loss = 0;
  double burst_start = 0;  // chance per datagram to begin losing all
  double burst_end = 0.2;  // chance per datagram to stop
  double duplicate = 0;
  double corrupt = 0;
  double reorder = 0;  // chance of an additional delay
  Nanos reorder_by = 0;
  double mark = 0;          // CE
  std::size_t mtu = 65507;  // larger datagrams vanish
  std::uint64_t rate = 0;   // bytes per second; 0: endless
  std::size_t queue = 0;    // bytes in front of the rate; more is dropped

  bool in_burst = false;
  Nanos free_at = 0;  // when the rate lets the next datagram begin
};

// Where all links into one node meet: what many senders at once overrun.
struct Port {
  std::uint64_t rate = 0;  // bytes per second; 0: endless
  std::size_t queue = 0;
  // What has a place in the queue need not wait: the rate is only measured (a token bucket).
  bool policed = false;
  Nanos free_at = 0;
};

struct Arrival {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool ce = false;
  std::vector<std::uint8_t> datagram;
};

struct Event {
  enum class Kind : std::uint8_t { kArrival, kTimer, kApplication, kFault };

  Nanos time = 0;
  Kind kind = Kind::kTimer;
  std::uint32_t node = 0;
  std::uint64_t tag = 0;  // of a timer: only the newest counts
  Arrival arrival;
};

class Network {
 public:
  Network(std::size_t nodes, std::uint64_t seed)
      : random_(seed), nodes_(nodes), links_(nodes * nodes), ports_(nodes) {}

  Link& link(std::size_t from, std::size_t to) { return links_[from * nodes_ + to]; }
  std::vector<Link>& links() { return links_; }
  Port& port(std::size_t node) { return ports_[node]; }

  void At(Nanos time, Event::Kind kind, std::uint32_t node, std::uint64_t tag = 0);
  // What the link does to the datagram decides when, and how often, it arrives.
  void Transmit(std::uint32_t from, std::uint32_t to, Bytes datagram);

  // Null when nothing is left to happen.  The event is valid until the next call.
  Event* Next();
  Nanos NextTime() const { return queue_.empty() ? kNever : TimeOf(queue_.top()); }
  Nanos now() const { return now_; }
  void AdvanceTo(Nanos time) { now_ = time > now_ ? time : now_; }
  std::uint64_t dropped() const { return dropped_; }

 private:
  // The queue orders small keys, the time before the order before the slot (ties: first come, first
  // served); the events stay where they are, with the memory of their datagrams.
  using Key = __int128;
  static constexpr int kSlotBits = 24;
  static Nanos TimeOf(Key key) { return static_cast<Nanos>(key >> 64); }
  Event& Push(Nanos time);
  void Deliver(Link& link, std::uint32_t from, std::uint32_t to, Bytes datagram);

  Random random_;
  std::size_t nodes_;
  std::vector<Link> links_;
  std::vector<Port> ports_;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> queue_;
  std::deque<Event> events_;  // by slot
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t current_ = kNil;  // the slot of what happens now
  Nanos now_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace sekisho::pm::sim
