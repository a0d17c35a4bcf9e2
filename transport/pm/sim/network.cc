// SPDX-License-Identifier: Apache-2.0
// A network in virtual time.
#include "transport/pm/sim/network.h"

#include <algorithm>
#include <utility>

namespace sekisho::pm::sim {

void Network::Push(Event event) {
  std::uint32_t slot = static_cast<std::uint32_t>(events_.size());
  if (free_slots_.empty()) {
    events_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  queue_.push({event.time, event.order, slot});
  events_[slot] = std::move(event);
}

void Network::At(Nanos time, Event::Kind kind, std::uint32_t node, std::uint64_t tag) {
  Event event;
  event.time = std::max(time, now_);
  event.order = order_++;
  event.kind = kind;
  event.node = node;
  event.tag = tag;
  Push(std::move(event));
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

void Network::Deliver(Link& link, Arrival arrival, std::size_t size) {
  Nanos start = Pass(link, now_, size);
  if (start >= 0) start = Pass(ports_[arrival.to], start, size);
  if (start < 0) {
    ++dropped_;
    return;
  }
  Event event;
  event.time = start + link.delay + (link.jitter > 0 ? random_.In(0, link.jitter) : 0);
  if (link.reorder_by > 0 && random_.Chance(link.reorder))
    event.time += random_.In(0, link.reorder_by);
  event.order = order_++;
  event.kind = Event::Kind::kArrival;
  event.node = arrival.to;
  arrival.ce = random_.Chance(link.mark);
  if (random_.Chance(link.corrupt)) {
    const auto bit = static_cast<std::size_t>(
        random_.In(0, static_cast<std::int64_t>(arrival.datagram.size()) * 8 - 1));
    arrival.datagram[bit / 8] =
        static_cast<std::uint8_t>(arrival.datagram[bit / 8] ^ 1u << bit % 8);
  }
  event.arrival = std::move(arrival);
  Push(std::move(event));
}

void Network::Transmit(std::uint32_t from, std::uint32_t to, std::vector<std::uint8_t> datagram) {
  Link& wire = link(from, to);
  const std::size_t size = datagram.size();
  wire.in_burst =
      wire.in_burst ? !random_.Chance(wire.burst_end) : random_.Chance(wire.burst_start);
  if (wire.in_burst || size > wire.mtu || random_.Chance(wire.loss)) {
    ++dropped_;
    return;
  }
  if (random_.Chance(wire.duplicate)) Deliver(wire, {from, to, false, datagram}, size);
  Deliver(wire, {from, to, false, std::move(datagram)}, size);
}

bool Network::Next(Event& event) {
  if (queue_.empty()) return false;
  const std::uint32_t slot = queue_.top().slot;
  queue_.pop();
  event = std::move(events_[slot]);
  free_slots_.push_back(slot);
  now_ = event.time;
  return true;
}

}  // namespace sekisho::pm::sim
