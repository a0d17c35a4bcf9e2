// SPDX-License-Identifier: Apache-2.0
// A network in virtual time.
#include "transport/pm/sim/network.h"

#include <algorithm>

namespace sekisho::pm::sim {

// The record of a new event, whose time and place in the queue are fixed.
Event& Network::Push(Nanos time) {
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(events_.size()));
    events_.emplace_back();
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  queue_.push(Key{time} << 64 | (order_++ << kSlotBits | slot));
  events_[slot].time = time;
  return events_[slot];
}

void Network::At(Nanos time, Event::Kind kind, std::uint32_t node, std::uint64_t tag) {
  Event& event = Push(std::max(time, now_));
  event.kind = kind;
  event.node = node;
  event.tag = tag;
}

namespace {

// When the last byte has passed, or -1 where the queue is full.
template <typename Gate>
Nanos Pass(Gate& gate, Nanos now, std::size_t size) {
  if (gate.rate == 0) return now;
  const Nanos backlog = std::max<Nanos>(gate.free_at - now, 0);
  const double waiting = static_cast<double>(backlog) * static_cast<double>(gate.rate) / kSecond;
  if (waiting + static_cast<double>(size) > static_cast<double>(gate.queue)) return -1;
  gate.free_at = std::max(gate.free_at, now) +
                 static_cast<Nanos>(size * static_cast<std::uint64_t>(kSecond) / gate.rate);
  return gate.free_at;
}

}  // namespace

void Network::Deliver(Link& link, std::uint32_t from, std::uint32_t to, Bytes datagram) {
  const std::size_t size = datagram.size();
  Nanos start = Pass(link, now_, size);
  if (start >= 0) {
    const Nanos end = Pass(ports_[to], start, size);
    if (end < 0 || !ports_[to].policed) start = end;
  }
  if (start < 0) {
    ++dropped_;
    return;
  }
  Nanos time = start + link.delay + (link.jitter > 0 ? random_.In(0, link.jitter) : 0);
  if (link.reorder_by > 0 && random_.Chance(link.reorder)) time += random_.In(0, link.reorder_by);
  Event& event = Push(time);
  event.kind = Event::Kind::kArrival;
  event.node = to;
  Arrival& arrival = event.arrival;
  arrival.from = from;
  arrival.to = to;
  arrival.ce = random_.Chance(link.mark);
  arrival.datagram.assign(datagram.begin(), datagram.end());
  if (random_.Chance(link.corrupt)) {
    const auto bit =
        static_cast<std::size_t>(random_.In(0, static_cast<std::int64_t>(size) * 8 - 1));
    arrival.datagram[bit / 8] =
        static_cast<std::uint8_t>(arrival.datagram[bit / 8] ^ 1u << bit % 8);
  }
}

void Network::Transmit(std::uint32_t from, std::uint32_t to, Bytes datagram) {
  Link& wire = link(from, to);
  wire.in_burst =
      wire.in_burst ? !random_.Chance(wire.burst_end) : random_.Chance(wire.burst_start);
  if (wire.in_burst || datagram.size() > wire.mtu || random_.Chance(wire.loss)) {
    ++dropped_;
    return;
  }
  if (random_.Chance(wire.duplicate)) Deliver(wire, from, to, datagram);
  Deliver(wire, from, to, datagram);
}

Event* Network::Next() {
  if (current_ != kNil) free_slots_.push_back(current_);
  current_ = kNil;
  if (queue_.empty()) return nullptr;
  current_ = static_cast<std::uint32_t>(queue_.top()) & ((1u << kSlotBits) - 1);
  queue_.pop();
  now_ = events_[current_].time;
  return &events_[current_];
}

}  // namespace sekisho::pm::sim
