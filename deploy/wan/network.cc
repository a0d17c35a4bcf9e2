// SPDX-License-Identifier: Apache-2.0
// See network.h.
#include "deploy/wan/network.h"

#include <utility>

namespace sekisho::wan {

std::unique_ptr<Network> Network::Make(Graph graph, const NetworkOptions& options,
                                       std::string& error) {
  std::optional<Routes> routes = Routes::Make(graph, error);
  if (!routes) return nullptr;
  std::optional<AddressBook> addresses = AddressBook::Make(graph.hosts, error);
  if (!addresses) return nullptr;
  std::optional<Door> door = Door::Make(graph.hosts, options.denied, error);
  if (!door) return nullptr;
  return std::unique_ptr<Network>(new Network(std::move(graph), *std::move(routes),
                                              *std::move(addresses), *std::move(door), options));
}

Network::Network(Graph graph, Routes routes, AddressBook addresses, Door door,
                 const NetworkOptions& options)
    : graph_(std::move(graph)),
      routes_(std::move(routes)),
      addresses_(std::move(addresses)),
      door_(std::move(door)),
      options_(options) {
  for (size_t i = 0; i < graph_.edges.size(); ++i) {
    // Far apart, so that no link draws what another draws a little later.
    links_.emplace_back(graph_.edges[i].settings, options_.seed * 0xd1342543de82ef95 + (i << 40));
  }
}

std::span<uint8_t> Network::Spare() {
  if (spare_.empty()) {
    spare_.push_back(static_cast<uint32_t>(packets_.size()));
    packets_.push_back({std::make_unique<uint8_t[]>(options_.packet_bytes_max)});
  }
  return {packets_[spare_.back()].bytes.get(), options_.packet_bytes_max};
}

void Network::Enter(int host, size_t length, int64_t now_ns) {
  ++counters_.entered;
  const uint32_t index = spare_.back();
  Packet& packet = packets_[index];
  const std::optional<PacketFacts> facts = ReadPacket({packet.bytes.get(), length});
  if (!facts) {
    ++counters_.not_ipv4;
    return;
  }
  const int target = addresses_.HostOf(facts->target);
  if (target < 0 || target == host) {
    ++counters_.no_route;
    return;
  }
  if (!door_.Admits(*facts, host, target)) {
    ++counters_.denied;
    return;
  }
  if ((counters_.in_flight + 1) * options_.packet_bytes_max > options_.memory_bytes_max) {
    ++counters_.too_many;
    return;
  }
  spare_.pop_back();
  ++counters_.in_flight;
  packet.length = static_cast<uint32_t>(length);
  packet.target = target;
  packet.vertex = graph_.hosts[host].vertex;
  Advance(index, now_ns);
}

// The packet is at its vertex at `time_ns`.  A link with a rate takes packets in the order in which
// they come, so the packet waits in the heap until everything earlier has happened; the others have
// no memory.
void Network::Advance(uint32_t index, int64_t time_ns) {
  Packet& packet = packets_[index];
  const int target = graph_.hosts[packet.target].vertex;
  do {
    const int edge = routes_.Next(packet.vertex, packet.target);
    const Link::Outcome outcome = links_[edge].Carry(time_ns, packet.length);
    if (outcome.fate != Link::Fate::kCarried) {
      ++(outcome.fate == Link::Fate::kLost ? counters_.lost : counters_.overflowed);
      --counters_.in_flight;
      spare_.push_back(index);
      return;
    }
    time_ns = outcome.arrival_ns;
    packet.vertex = graph_.edges[edge].to;
  } while (packet.vertex != target &&
           links_[routes_.Next(packet.vertex, packet.target)].is_unlimited());
  events_.Push(packet.vertex == target ? time_ns - options_.compensate_ns : time_ns, index);
}

std::optional<int64_t> Network::NextNs() const {
  if (events_.empty()) return std::nullopt;
  return events_.top().time_ns;
}

std::optional<Network::Delivery> Network::Take(int64_t now_ns) {
  while (!events_.empty() && events_.top().time_ns <= now_ns) {
    const Event event = events_.top();
    events_.Pop();
    Packet& packet = packets_[event.packet];
    if (packet.vertex == graph_.hosts[packet.target].vertex) {
      ++counters_.delivered;
      --counters_.in_flight;
      spare_.push_back(event.packet);
      return Delivery{packet.target, event.time_ns, {packet.bytes.get(), packet.length}};
    }
    Advance(event.packet, event.time_ns);
  }
  return std::nullopt;
}

}  // namespace sekisho::wan
