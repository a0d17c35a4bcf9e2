// SPDX-License-Identifier: Apache-2.0
// n nodes with applications that talk over a bad network.
#include "transport/pm/sim/world.h"

#include <algorithm>

namespace sekisho::pm::sim {
namespace {

constexpr std::uint32_t kPort = 1000;

Address AddressOf(std::uint32_t node) {
  Address address;
  address.ip[15] = static_cast<std::uint8_t>(node);
  address.port = static_cast<std::uint16_t>(kPort + node);
  return address;
}

}  // namespace

World::World(const Plan& plan, std::uint64_t seed)
    : plan_(plan),
      seed_(seed),
      random_(seed * 2 + 1),
      network_(plan.nodes, seed * 2 + 2),
      nodes_(plan.nodes) {
  channels_ = static_cast<std::uint16_t>(random_.In(1, 3));
  for (std::uint32_t id = 0; id < plan_.nodes; ++id) {
    Node& node = nodes_[id];
    Config& config = node.config;
    config.node = static_cast<NodeId>(id);
    config.nodes = static_cast<std::uint16_t>(plan_.nodes);
    config.context = 1;
    config.channels = channels_;
    config.send_ring = 4096u << random_.In(0, 4);
    config.receive_ring = 4096u << random_.In(0, 4);
    config.message_limit = static_cast<std::uint32_t>(random_.In(64, 200));
    config.packets = static_cast<std::uint32_t>(random_.In(16, 200));
    config.intervals = static_cast<std::uint32_t>(random_.In(4, 64));
    config.datagram_max =
        static_cast<std::uint32_t>(random_.Chance(0.5) ? 1472 : random_.In(1200, 9000));
    config.incast_budget = static_cast<std::uint32_t>(random_.In(4096, 200'000));
    config.key.fill(static_cast<std::uint8_t>(seed));
    config.incarnation = 1;
    node.to_send = plan_.messages;
    node.reads = random_.Chance(0.3) ? 0.1 : 1;
    node.in.resize(plan_.nodes * channels_);
    node.out.resize(plan_.nodes * channels_);
    Start(id);
    network_.At(random_.In(0, kMillisecond), Event::Kind::kApplication, id);
  }
  if (plan_.faults) DrawFaults();
  network_.At(plan_.heal_at, Event::Kind::kFault, 0, 1);
}

void World::Start(std::uint32_t id) {
  Node& node = nodes_[id];
  if (node.endpoint) {
    CheckAll(id);
    buried_.push_back(node.endpoint->counters());
  }
  node.config.seed = random_.Next();
  const MutableBytes memory = node.memory.Take(node.config, plan_.thorough);
  node.endpoint = std::make_unique<Endpoint>();
  const auto error = node.endpoint->Init(node.config, memory, nullptr, LocalTime(node));
  if (error) Fail("init: " + error.message());
  node.endpoint->MindRings(plan_.thorough ? NodeMemory::SpoilAll : NodeMemory::Spoil);
  for (std::uint32_t peer = 0; peer < plan_.nodes; ++peer) {
    (void)node.endpoint->SetAddress(static_cast<NodeId>(peer), AddressOf(peer));
  }
  Await(id, (seed_ + id) % 8 == 1);  // not drawn: other seeds stay what they were
  node.audit.Start(plan_.nodes, plan_.thorough);
  node.holds = false;
  node.socket.clear();
  for (Outgoing& out : node.out) out = Outgoing();
  for (Incoming& in : node.in) in.partial.clear();
  node.settled.assign(plan_.nodes, kNil);
  node.timer_at = kNever;
  node.checked_wave = 0;
}

void World::DrawFaults() {
  const double scale = random_.Chance(0.3) ? 0 : 1;
  for (Link& link : network_.links()) {
    link.delay = random_.In(1, 200) * kMicrosecond * (random_.Chance(0.1) ? 50 : 1);
    link.jitter = random_.In(0, 50) * kMicrosecond;
    link.loss =
        scale * static_cast<double>(random_.In(0, 20)) / 100 * (random_.Chance(0.5) ? 1 : 0);
    link.burst_start = scale * (random_.Chance(0.2) ? 0.01 : 0);
    link.duplicate = random_.Chance(0.3) ? 0.05 : 0;
    link.corrupt = random_.Chance(0.3) ? 0.03 : 0;
    link.reorder = random_.Chance(0.3) ? 0.1 : 0;
    link.reorder_by = random_.In(1, 1000) * kMicrosecond;
    link.mark = random_.Chance(0.1) ? 0.05 : 0;
    if (random_.Chance(0.3)) link.mtu = static_cast<std::size_t>(random_.In(1200, 9000));
    if (random_.Chance(0.2)) {
      link.rate = static_cast<std::uint64_t>(random_.In(1, 100)) * 1'000'000;
      link.queue = static_cast<std::size_t>(random_.In(8, 200)) * 1024;
    }
  }
  for (Node& node : nodes_) {
    if (random_.Chance(0.3)) node.interface_mtu = static_cast<std::size_t>(random_.In(1200, 9000));
  }
  const std::int64_t count = random_.In(0, 8);
  for (std::int64_t i = 0; i < count; ++i) {
    network_.At(random_.In(0, plan_.heal_at), Event::Kind::kFault,
                static_cast<std::uint32_t>(random_.In(0, plan_.nodes - 1)));
  }
}

void World::Heal() {
  healed_ = true;
  for (Link& link : network_.links()) {
    const Link old = link;
    link = Link();
    link.delay = old.delay;
    link.mtu = old.mtu;  // a path may stay narrow
    link.free_at = 0;
  }
  for (std::uint32_t id = 0; id < plan_.nodes; ++id) {
    if (!nodes_[id].dead) continue;
    nodes_[id].dead = false;
    Start(id);
  }
}

// One misfortune of a random node.
void World::Fault() {
  const auto id = static_cast<std::uint32_t>(random_.In(0, plan_.nodes - 1));
  Node& node = nodes_[id];
  switch (random_.In(0, 4)) {
    case 0:
      node.paused_until = network_.now() + random_.In(0, 100) * kMillisecond;
      break;
    case 1:
      if (!plan_.kills) break;
      ++node.kills;
      node.config.incarnation = node.kills + 1;
      if (!node.dead && random_.Chance(0.5)) {
        node.dead = true;  // starts again when all heals
      } else {
        node.dead = false;
        Start(id);
      }
      break;
    case 2:
      if (!plan_.clocks) break;
      node.clock_offset += random_.Chance(0.5) ? random_.In(0, 10'000) * kMillisecond
                                               : -random_.In(0, 5) * kMillisecond;
      break;
    case 3:
      for (std::uint32_t other = 0; other < plan_.nodes; ++other) {
        network_.link(id, other).mtu = static_cast<std::size_t>(random_.In(1200, 9000));
      }
      break;
    default:
      for (std::uint32_t other = 0; other < plan_.nodes; ++other) {
        network_.link(id, other).loss = random_.Chance(0.5) ? 1 : 0;
      }
  }
}

void World::Fail(const std::string& what) {
  if (failure_.empty()) {
    failure_ = what + " (at " + std::to_string(network_.now() / kMicrosecond) + " us, event " +
               std::to_string(events_) + ")";
  }
}

std::string World::Run() {
  while (failure_.empty()) {
    Event* event = network_.Next();
    if (event == nullptr) break;
    ++events_;
    if (network_.now() > plan_.end_at) {
      Fail("stalled: not quiet at the end" + Unfinished());
      break;
    }
    Handle(*event);
  }
  if (failure_.empty()) CheckEnd();
  return failure_;
}

void World::Handle(Event& event) {
  if (event.kind == Event::Kind::kFault) {
    if (event.tag == 1) {
      Heal();
    } else {
      Fault();
    }
    return;
  }
  const std::uint32_t id = event.node;
  Node& node = nodes_[id];
  if (event.kind == Event::Kind::kTimer) {
    if (event.tag != node.timer || node.dead) return;
    node.timer_at = kNever;
  }
  const bool paused = network_.now() < node.paused_until;
  if (event.kind == Event::Kind::kArrival) {
    if (node.dead) return;
    if (paused) {
      if (node.socket.size() < 64) {
        node.socket.push_back(std::move(event.arrival));
      } else {
        ++overflown_;
      }
      return;
    }
    node.audit.Touch(event.arrival.from);
    node.endpoint->OnDatagram(AddressOf(event.arrival.from), event.arrival.datagram,
                              event.arrival.ce, LocalTime(node));
  } else if (paused) {
    network_.At(node.paused_until, event.kind, id, event.tag);
    if (event.kind == Event::Kind::kTimer) node.timer_at = node.paused_until;
    return;
  }
  if (node.dead) {
    network_.At(network_.now() + 10 * kMillisecond, Event::Kind::kApplication, id);
    return;
  }
  for (Arrival& arrival : node.socket) {
    node.audit.Touch(arrival.from);
    node.endpoint->OnDatagram(AddressOf(arrival.from), arrival.datagram, arrival.ce,
                              LocalTime(node));
  }
  node.socket.clear();
  if (node.endpoint->NextDeadline() <= LocalTime(node)) node.endpoint->OnTimer(LocalTime(node));
  if (event.kind == Event::Kind::kApplication) {
    Step(id);
    node.ended = healed_ && Quiet();
    if (node.ended) {
      Await(id, false);
    } else {
      network_.At(network_.now() + random_.In(1, 500) * kMicrosecond, Event::Kind::kApplication,
                  id);
    }
  } else if (node.ended && Busy(node)) {
    node.ended = false;  // something of a process that died was still on its way
    network_.At(network_.now() + kMillisecond, Event::Kind::kApplication, id);
  }
  Pump(id);
  if (const char* wrong = node.audit.Check(*node.endpoint))
    Fail(std::string("node ") + std::to_string(id) + ": " + wrong);
  CheckStop(id);
}

// One of the others, as if it owed an answer.
void World::Await(std::uint32_t id, bool awaits) {
  Node& node = nodes_[id];
  const auto peer = static_cast<NodeId>((id + seed_ / 8) % plan_.nodes);
  if (node.endpoint->peer(peer).is_awaited != awaits) {
    node.endpoint->Await(peer, awaits, LocalTime(node));
  }
}

// Now and then somebody stops the whole job, or lets it go.
void World::Preempt(std::uint32_t id) {
  Endpoint& endpoint = *nodes_[id].endpoint;
  const double share = 4.0 / plan_.nodes;  // a large job takes long to stop
  endpoint.NoteProgram(random_.Chance(0.5));
  if (!endpoint.paused()) {
    if (!healed_ && random_.Chance(0.01)) endpoint.AskGang(true, LocalTime(nodes_[id]));
  } else if (random_.Chance(healed_ ? 0.5 : 0.05 * share * share * share)) {
    endpoint.AskGang(false, LocalTime(nodes_[id]));
  }
}

void World::Step(std::uint32_t id) {
  Node& node = nodes_[id];
  if (plan_.stops) Preempt(id);
  GoOn(id);
  if (node.endpoint->paused()) return;
  if (node.holds) {
    node.holds = false;
    node.audit.Touch(node.held_from);
    if (const auto error =
            node.endpoint->Release(node.held_from, node.held_channel, LocalTime(node))) {
      Fail("release: " + error.message());
    }
  }
  if (healed_ || random_.Chance(node.reads)) ReceiveSome(id);
  SendSome(id);
}

void World::ReceiveSome(std::uint32_t id) {
  Node& node = nodes_[id];
  Message message;
  while (node.endpoint->Receive(message)) {
    Verify(id, message);
    node.audit.Touch(message.source);
    if (random_.Chance(0.05)) {
      node.holds = true;
      node.held_from = message.source;
      node.held_channel = message.channel;
      return;
    }
    (void)node.endpoint->Release(message.source, message.channel, LocalTime(node));
  }
}

// What was begun goes on; a series ends with its session.
void World::GoOn(std::uint32_t id) {
  Node& node = nodes_[id];
  for (std::uint32_t to = 0; to < plan_.nodes; ++to) {
    const std::uint32_t session = node.endpoint->peer_session(static_cast<NodeId>(to));
    if (session == node.settled[to]) continue;
    node.settled[to] = session;
    node.audit.Touch(to);
    for (std::uint16_t channel = 0; channel < channels_; ++channel) {
      Outgoing& out = node.out[to * channels_ + channel];
      if (out.session > 0 && session != out.session) out = Outgoing();
      if (out.session == 0 && session > 1) out = Outgoing();  // a whole session passed meanwhile
      if (out.session == 0 && out.series != 0) out.session = session;
      if (out.part.empty()) continue;
      out.part_done +=
          node.endpoint->Append(static_cast<NodeId>(to), static_cast<ChannelId>(channel),
                                Bytes(out.part).subspan(out.part_done), LocalTime(node));
      if (out.part_done == out.part.size()) out.part.clear();
      if (!out.part.empty()) node.settled[to] = kNil;
    }
  }
}

void World::SendSome(std::uint32_t id) {
  Node& node = nodes_[id];
  const std::int64_t count = healed_ ? 8 : random_.In(0, 4);
  const auto favourite = static_cast<NodeId>(random_.In(0, plan_.nodes - 1));
  for (std::int64_t i = 0; i < count && node.to_send > 0; ++i) {
    const NodeId to =
        random_.Chance(0.3) ? favourite : static_cast<NodeId>(random_.In(0, plan_.nodes - 1));
    if (to != id) SendOne(id, to, static_cast<ChannelId>(random_.In(0, channels_ - 1)));
  }
}

void World::SendOne(std::uint32_t id, NodeId to, ChannelId channel) {
  Node& node = nodes_[id];
  Outgoing& out = node.out[to * std::size_t{channels_} + channel];
  if (!out.part.empty()) return;
  Endpoint& endpoint = *node.endpoint;
  if (out.series == 0) {
    out.series = next_series_++;
    out.session = endpoint.peer_session(to);
    out.kills = node.kills + nodes_[to].kills;
  }
  node.settled[to] = kNil;
  node.audit.Touch(to);
  // Most find no room, and then it does not matter what is in it.
  const TextOf text(id, to, channel, out.series, out.sent);
  std::error_code error = endpoint.Room(to, channel, text.size());
  if (!error) {
    error = endpoint.Send(to, channel, text.Write(text_), LocalTime(node));
  } else if (error == Error::kTooLong) {
    error = endpoint.Begin(to, channel, static_cast<std::uint32_t>(text.size()), LocalTime(node));
    if (!error) {
      const Bytes message = text.Write(text_);
      out.part_done = endpoint.Append(to, channel, message, LocalTime(node));
      if (out.part_done < message.size()) out.part.assign(message.begin(), message.end());
    }
  }
  if (error == Error::kPeerGone) {
    if (node.kills + nodes_[to].kills == 0) {
      Fail("gone without a kill, reason " +
           std::to_string(static_cast<int>(endpoint.peer_reason(to))));
    }
    --node.to_send;  // nobody to send to any more
    return;
  }
  if (error == Error::kWouldBlock) return;
  if (error) return Fail("send: " + error.message());
  ++out.sent;
  --node.to_send;
}

void World::Pump(std::uint32_t id) {
  Node& node = nodes_[id];
  Address to;
  // Whoever is given a datagram, or would be, is known before.
  for (std::uint32_t peer = node.endpoint->first_work(); peer != kNil;) {
    node.audit.Touch(peer);
    peer = node.endpoint->peer(static_cast<NodeId>(peer)).work_next;
  }
  for (int i = 0;; ++i) {
    const std::size_t size = node.endpoint->NextDatagram(LocalTime(node), room_, to);
    if (size == 0) break;
    if (i > 5000) return Fail("a storm of datagrams in one instant");
    if (to.port < kPort || to.port >= kPort + plan_.nodes) return Fail("datagram to nowhere");
    const auto peer = static_cast<NodeId>(to.port - kPort);
    if (size > node.interface_mtu) {
      node.endpoint->OnRefused(peer, size > node.endpoint->session(peer).mtu, LocalTime(node));
      node.audit.Touch(peer);
      continue;
    }
    network_.Transmit(id, to.port - kPort, Bytes(room_).first(size));
  }
  const Nanos deadline = node.endpoint->NextDeadline();
  if (deadline == kNever) {
    ++node.timer;
    node.timer_at = kNever;
    return;
  }
  const Nanos when = std::max(network_.now() + 1, deadline - node.clock_offset - kSecond);
  if (when == node.timer_at) return;
  node.timer_at = when;
  network_.At(when, Event::Kind::kTimer, id, ++node.timer);
}

}  // namespace sekisho::pm::sim
