// SPDX-License-Identifier: Apache-2.0
// n endpoints on a simulated network.
#include "transport/pm/sim/cluster.h"

#include <algorithm>

namespace sekisho::pm::sim {
namespace {

constexpr std::uint32_t kPort = 1000;

MutableBytes Aligned(std::vector<std::uint8_t>& memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  return MutableBytes(memory).subspan((64 - address % 64) % 64, memory.size() - 64);
}

}  // namespace

Cluster::Cluster(std::uint32_t nodes, const std::function<void(Config&)>& adjust,
                 std::uint64_t seed)
    : network_(nodes, seed), nodes_(nodes) {
  for (std::uint32_t id = 0; id < nodes; ++id) {
    Config& config = nodes_[id].config;
    config.datagram_max = 1472;  // an Ethernet of 1500 bytes
    config.node = static_cast<NodeId>(id);
    config.nodes = static_cast<std::uint16_t>(nodes);
    config.key.fill(7);
    config.incarnation = 1;
    config.seed = seed * 1000 + id;
    adjust(config);
    Start(id);
  }
}

Address Cluster::AddressOf(std::uint32_t node) {
  Address address;
  address.port = static_cast<std::uint16_t>(kPort + node);
  return address;
}

void Cluster::Start(std::uint32_t id) {
  Node& node = nodes_[id];
  node.memory.assign(Endpoint::MemoryNeeded(node.config) + 64, 0xa5);
  node.endpoint = std::make_unique<Endpoint>();
  (void)node.endpoint->Init(node.config, Aligned(node.memory), node.cipher, now());
  for (std::uint32_t peer = 0; peer < nodes_.size(); ++peer) {
    (void)node.endpoint->SetAddress(static_cast<NodeId>(peer), AddressOf(peer));
  }
  node.timer_at = kNever;
}

void Cluster::Restart(std::uint32_t id) {
  ++nodes_[id].config.incarnation;
  Start(id);
}

void Cluster::Encrypt(std::uint32_t id, Cipher* cipher) {
  nodes_[id].cipher = cipher;
  Start(id);
}

std::vector<std::uint8_t> Cluster::Save(std::uint32_t id) {
  const MutableBytes memory = Aligned(nodes_[id].memory);
  return {memory.begin(), memory.end()};
}

void Cluster::Restore(std::uint32_t id, const std::vector<std::uint8_t>& saved) {
  Node& node = nodes_[id];
  std::vector<std::uint8_t> memory(saved.size() + 64);
  const MutableBytes old = Aligned(memory);
  std::copy(saved.begin(), saved.end(), old.begin());
  const std::size_t area = Endpoint::AreaNeeded(node.config);
  Endpoint torn;
  (void)torn.Attach(node.config, old.first(area), old.subspan(area));
  Start(id);
  std::copy(old.begin() + static_cast<std::ptrdiff_t>(area), old.end(),
            Aligned(node.memory).begin() + static_cast<std::ptrdiff_t>(area));
  node.endpoint->Rebuild(torn);
  node.endpoint->Moved(now());
  Pump(id);
}

void Cluster::SendText(std::uint32_t from, std::uint32_t to, ChannelId channel, std::size_t size) {
  const std::vector<std::uint8_t> text(size, 'x');
  (void)nodes_[from].endpoint->Send(static_cast<NodeId>(to), channel, text, now());
  Pump(from);
}

void Cluster::Deliver(std::uint32_t from, std::uint32_t to, std::vector<std::uint8_t> datagram) {
  nodes_[to].endpoint->OnDatagram(AddressOf(from), datagram, false, now());
  Turn(to);
}

void Cluster::Turn(std::uint32_t id) {
  Node& node = nodes_[id];
  if (on_turn) {
    on_turn(id);
  } else {
    Message message;
    while (node.endpoint->Receive(message)) {
      node.delivered += message.more ? 0 : 1;
      node.delivered_bytes += message.bytes.size();
      (void)node.endpoint->Release(message.source, message.channel, now());
    }
  }
  Pump(id);
}

void Cluster::Pump(std::uint32_t id) {
  Node& node = nodes_[id];
  Address to;
  for (;;) {
    const std::size_t size = node.endpoint->NextDatagram(now(), room_, to);
    if (size == 0) break;
    const std::uint32_t target = to.port - kPort;
    if (size > interface_mtu) {
      const auto peer = static_cast<NodeId>(target);
      node.endpoint->OnRefused(peer, size > node.endpoint->session(peer).mtu, now());
      continue;
    }
    if (on_datagram && !on_datagram(id, target, Bytes(room_).first(size))) continue;
    network_.Transmit(id, target, Bytes(room_).first(size));
  }
  const Nanos deadline = node.endpoint->NextDeadline();
  if (deadline == kNever) {
    ++node.timer;
    node.timer_at = kNever;
    return;
  }
  const Nanos when = std::max(network_.now() + 1, deadline - kSecond);
  if (when == node.timer_at) return;
  node.timer_at = when;
  network_.At(when, Event::Kind::kTimer, id, ++node.timer);
}

bool Cluster::Run(Nanos limit, const std::function<bool()>& done) {
  const Nanos end = network_.now() + limit;
  while (!done()) {
    if (network_.NextTime() > end) {
      network_.AdvanceTo(end);
      return done();
    }
    Event& event = *network_.Next();
    Node& node = nodes_[event.node];
    if (event.kind == Event::Kind::kTimer) {
      if (event.tag != node.timer) continue;
      node.timer_at = kNever;
      node.endpoint->OnTimer(now());
    } else {
      node.endpoint->OnDatagram(AddressOf(event.arrival.from), event.arrival.datagram,
                                event.arrival.ce, now());
    }
    Turn(event.node);
  }
  return true;
}

}  // namespace sekisho::pm::sim
