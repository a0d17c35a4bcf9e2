// SPDX-License-Identifier: Apache-2.0
// What must hold: after every delivery, and when a run ends.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "transport/pm/sim/world.h"

namespace sekisho::pm::sim {
namespace {

constexpr std::int64_t kLargest = 40'000;
constexpr std::uint32_t kAuditAll = 64;  // events

}  // namespace

TextOf::TextOf(std::uint32_t from, std::uint32_t to, std::uint32_t channel, std::uint32_t series,
               std::uint32_t number)
    : series_(series), number_(number) {
  Random random((std::uint64_t{series} << 32 | number) * 31 + from * 65536 + to * 256 + channel);
  size_ = 8 + static_cast<std::size_t>(random.In(0, 64));
  if (random.Chance(0.2)) size_ += static_cast<std::size_t>(random.In(0, 3000));
  if (random.Chance(0.05)) size_ += static_cast<std::size_t>(random.In(0, kLargest));
  seed_ = random.Next();
}

// No word of it is another of the same message, and hardly one of another message.
Bytes TextOf::Write(std::vector<std::uint8_t>& room) const {
  if (room.size() < size_ + 8) room.resize(size_ + 8);
  std::uint8_t* out = room.data();
  for (std::size_t at = 0; at < size_; at += 8) {
    const std::uint64_t word = seed_ + at * 0x9e3779b97f4a7c15;
    std::memcpy(out + at, &word, 8);
  }
  std::memcpy(out, &series_, 4);
  std::memcpy(out + 4, &number_, 4);
  return Bytes(room).first(size_);
}

// Exactly once, in order, unchanged.
void World::Verify(std::uint32_t id, const Message& message) {
  Incoming& in = nodes_[id].in[message.source * std::size_t{channels_} + message.channel];
  const std::uint32_t session = nodes_[id].endpoint->peer_session(message.source);
  if (in.session != session) in.partial.clear();  // the rest died with the peer
  in.session = session;
  Pieces got = message.bytes;
  if (message.more || !in.partial.empty()) {
    in.partial.insert(in.partial.end(), got.first.begin(), got.first.end());
    in.partial.insert(in.partial.end(), got.second.begin(), got.second.end());
    if (message.more) return;
    got = {in.partial, {}};
  }
  if (got.size() < 8) return Fail("message too short");
  std::array<std::uint8_t, 8> head;
  for (std::size_t i = 0; i < head.size(); ++i) {
    head[i] = i < got.first.size() ? got.first[i] : got.second[i - got.first.size()];
  }
  std::uint32_t series, number;
  std::memcpy(&series, head.data(), 4);
  std::memcpy(&number, head.data() + 4, 4);
  if (series < in.series) return Fail("message of an old series");
  if (series > in.series) in.series = series, in.received = 0;
  if (number < in.received) return Fail("message delivered twice");
  if (number > in.received) return Fail("message missing");
  ++in.received;
  ++delivered_;
  const TextOf text(message.source, id, message.channel, series, number);
  if (got.size() != text.size()) return Fail("message changed");
  const std::uint8_t* wanted = text.Write(text_).data();
  if (!std::equal(got.first.begin(), got.first.end(), wanted) ||
      !std::equal(got.second.begin(), got.second.end(), wanted + got.first.size())) {
    Fail("message changed");
  }
  in.partial.clear();
}

// As soon as a node knows the job to be flushed, all that was sent has arrived, and what is settled
// was flushed.
void World::CheckStop(std::uint32_t id) {
  Node& node = nodes_[id];
  const std::uint64_t wave = node.endpoint->gang().wave;
  if (wave == node.checked_wave) return;
  node.checked_wave = wave;
  const GangPhase phase = PhaseOf(wave);
  if (phase == GangPhase::kSettled && !claims_[wave - 1]) {
    return Fail("settled, and the job never was flushed");
  }
  if (phase == GangPhase::kRunning || phase == GangPhase::kStopping || claims_.contains(wave)) {
    return;
  }
  if (phase == GangPhase::kSettled) {
    claims_[wave] = true;
    return CheckSettled(node);
  }
  claims_[wave] = HasFlushed(wave);
  ++flushes_;
}

// All that was sent has arrived.
bool World::Arrived(const Node& from, const Node& to) const {
  for (std::uint16_t channel = 0; channel < channels_; ++channel) {
    const SendStream& out = from.endpoint->send_streams(to.config.node)[channel];
    const auto& in = to.endpoint->receive_stream(from.config.node, static_cast<ChannelId>(channel));
    if (out.acked != out.cut || in.contiguous != out.cut) return false;
  }
  return true;
}

// Of every pair that neither was killed.  Where two lead, one may have let the job go before the
// other says that it is flushed: false, and then it must not settle.
bool World::HasFlushed(std::uint64_t wave) {
  for (const Node& node : nodes_) {
    if (node.kills == 0 && node.endpoint->gang().wave >= NextRunning(wave)) return false;
  }
  for (const Node& from : nodes_) {
    for (const Node& to : nodes_) {
      if (&from == &to || from.kills + to.kills > 0) continue;
      if (!from.endpoint->paused()) Fail("flushed, and a node does not know that it stops");
      if (from.endpoint->peer_state(to.config.node) == PeerState::kGone) continue;
      if (!Arrived(from, to)) Fail("flushed, and data is under way");
    }
  }
  return true;
}

// Both have a session, the same one.
bool World::Talk(const Node& a, const Node& b) {
  const auto knows = [](const Node& one, const Node& other) {
    const Peer& peer = one.endpoint->peer(other.config.node);
    return !other.dead && peer.has_session && peer.state != PeerState::kGone &&
           peer.incarnation == other.config.incarnation;
  };
  return knows(a, b) && knows(b, a);
}

// The first to know that the job is settled leads; whoever it has let in has flushed, however often
// it was killed before.
void World::CheckSettled(const Node& leader) {
  for (const Node& from : nodes_) {
    if (&from != &leader && !Talk(leader, from)) continue;
    for (const Node& to : nodes_) {
      if (&from == &to || !Talk(from, to)) continue;
      if (!Arrived(from, to)) Fail("settled, and data is under way");
    }
  }
}

// All of a series arrived, unless one of its ends was killed meanwhile.
bool World::Whole(const Node& from, const Node& to, const Outgoing& out, const Incoming& in) {
  return out.series == 0 || out.kills != from.kills + to.kills ||
         (in.series == out.series && in.received == out.sent);
}

// Something is left to send to this peer, or to deliver there.
bool World::Owes(const Node& node, NodeId id) const {
  const bool gone = node.endpoint->peer_state(id) == PeerState::kGone;
  // What was sent to a process that was dead by then, and whose next life never spoke to us.
  if (gone && node.endpoint->peer(id).incarnation < nodes_[id].config.incarnation) return false;
  if (!gone && !node.endpoint->Drained(id)) return true;
  for (std::uint16_t channel = 0; channel < channels_; ++channel) {
    const Outgoing& out = node.out[id * std::size_t{channels_} + channel];
    const Incoming& in = nodes_[id].in[node.config.node * std::size_t{channels_} + channel];
    if (!Whole(node, nodes_[id], out, in)) return true;
  }
  return false;
}

bool World::Busy(const Node& node) const {
  // Who leaves the messages of a dead node unread keeps its next life waiting.
  if (node.endpoint->HasMessage()) return true;
  if (node.to_send > 0 || node.holds || node.endpoint->paused() ||
      network_.now() < node.paused_until)
    return true;
  // A stop that is on its way finds applications that let the job go on.
  return node.endpoint->gang().asked > node.endpoint->gang().wave;
}

// Nothing is left to send or to deliver.  Who was busy last time often still is, and is asked
// first.
bool World::Quiet() {
  if (Busy(nodes_[busy_]) || Owes(nodes_[busy_], owed_)) return false;
  for (const Node& node : nodes_) {
    busy_ = node.config.node;
    if (Busy(node)) return false;
    for (owed_ = 0; owed_ < plan_.nodes; ++owed_) {
      if (Owes(node, owed_)) return false;
    }
    owed_ = 0;
  }
  return true;
}

// For the report of a stall: what each pair still owes.
std::string World::Unfinished() const {
  std::string text;
  for (const Node& node : nodes_) {
    const Endpoint& endpoint = *node.endpoint;
    const std::string name = std::to_string(node.config.node);
    const GangNote& gang = endpoint.gang();
    if (endpoint.paused() || gang.asked > gang.wave) {
      text += "\n  node " + name + (endpoint.paused() ? " stopped" : " runs") + ": wave " +
              std::to_string(gang.wave) + " asked " + std::to_string(gang.asked) + " reported " +
              std::to_string(gang.reported) + " gone";
      for (std::uint32_t id = 0; id < plan_.nodes; ++id) {
        const auto peer = static_cast<NodeId>(id);
        const bool gone = endpoint.peer_state(peer) == PeerState::kGone;
        text += gone ? " " + std::to_string(id) : "";
      }
    }
    if (node.holds || endpoint.HasMessage()) text += "\n  node " + name + " has unread messages";
    for (std::uint32_t id = 0; id < plan_.nodes; ++id) {
      const Peer& peer = endpoint.peer(static_cast<NodeId>(id));
      if (peer.greet == Peer::Greet::kNone) continue;
      text += "\n  node " + name + " greets " + std::to_string(id) + ", tries " +
              std::to_string(peer.greet_tries) + " state " +
              std::to_string(static_cast<int>(peer.state)) + " gang " +
              std::to_string(peer.gang_due) + " incarnation " + std::to_string(peer.incarnation) +
              " of " + std::to_string(nodes_[id].config.incarnation);
    }
    if (node.to_send > 0)
      text += "\n  node " + name + " has " + std::to_string(node.to_send) + " to send";
    for (std::uint32_t id = 0; id < plan_.nodes; ++id) {
      const auto to = static_cast<NodeId>(id);
      for (std::uint16_t channel = 0; channel < channels_; ++channel) {
        const Outgoing& out = node.out[id * channels_ + channel];
        const Incoming& in = nodes_[id].in[node.config.node * channels_ + channel];
        if (Whole(node, nodes_[id], out, in)) continue;
        text += "\n  " + name + " -> " + std::to_string(id) + " channel " +
                std::to_string(channel) + " series " + std::to_string(out.series) + " sent " +
                std::to_string(out.sent) + " there series " + std::to_string(in.series) +
                " received " + std::to_string(in.received) + " incarnation " +
                std::to_string(endpoint.peer(to).incarnation) + " of " +
                std::to_string(nodes_[id].config.incarnation) + " session " +
                std::to_string(out.session) + " now " + std::to_string(endpoint.peer_session(to)) +
                " state " + std::to_string(static_cast<int>(endpoint.peer_state(to))) + " reason " +
                std::to_string(static_cast<int>(endpoint.peer_reason(to)));
      }
      if (endpoint.Drained(to)) continue;
      const Session none;
      const Session& session = endpoint.peer(to).has_session ? endpoint.session(to) : none;
      text += "\n  " + name + " -> " + std::to_string(id) + " state " +
              std::to_string(static_cast<int>(endpoint.peer_state(to))) + " in flight " +
              std::to_string(session.in_flight) + " window " +
              std::to_string(session.congestion.window()) + " new bytes " +
              std::to_string(session.new_bytes) + " grant " + std::to_string(session.grant_limit) +
              " want " + std::to_string(session.want_reported) + " lost waiting " +
              std::to_string(!session.lost_segments.empty()) + " time-outs " +
              std::to_string(session.timeouts) + " mtu " + std::to_string(session.mtu) +
              " floor span " + std::to_string(session.next_number) + " next send in us " +
              std::to_string((session.next_send - LocalTime(node)) / kMicrosecond);
      for (const SendStream& out : endpoint.send_streams(to)) {
        text += "\n    stream written " + std::to_string(out.written) + " cut " +
                std::to_string(out.cut) + " acked " + std::to_string(out.acked) + " limit " +
                std::to_string(out.byte_limit) + " messages " + std::to_string(out.messages) +
                " of " + std::to_string(out.message_limit) + " part " +
                std::to_string(out.part_left);
      }
    }
  }
  return text;
}

namespace {

constexpr std::uint8_t kNonsense = 0xa5;
constexpr std::size_t kLine = 64;
constexpr std::size_t kLeastRing = 4096;  // all are powers of two

void SpoilLines(MutableBytes bytes, std::size_t step) {
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    std::ranges::fill(bytes.subspan(at, kLine), kNonsense);
  }
}

}  // namespace

std::vector<NodeMemory::Block>& NodeMemory::Spare() {
  static std::vector<Block> spare;
  return spare;
}

NodeMemory::~NodeMemory() {
  if (block_.bytes) Spare().push_back(std::move(block_));
}

MutableBytes NodeMemory::Take(const Config& config, bool thorough) {
  const std::size_t size = Endpoint::MemoryNeeded(config);
  if (!block_.bytes && !Spare().empty()) {
    block_ = std::move(Spare().back());
    Spare().pop_back();
  }
  if (!block_.bytes || block_.size < size + kLine) {
    const std::size_t whole = std::bit_ceil(size + kLine);
    block_ = {std::make_unique_for_overwrite<std::uint8_t[]>(whole), whole};
    SpoilLines({block_.bytes.get(), whole}, kLeastRing);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(block_.bytes.get());
  const MutableBytes memory = {block_.bytes.get() + (kLine - address % kLine) % kLine, size};
  SpoilAll(thorough ? memory : memory.first(Endpoint::AreaNeeded(config)));
  return memory;
}

void NodeMemory::SpoilAll(MutableBytes rings) { std::ranges::fill(rings, kNonsense); }

void NodeMemory::Spoil(MutableBytes rings) {
  SpoilLines(rings, std::max(kLeastRing, std::bit_floor(rings.size() / 8)));
}

void Audit::Start(std::size_t nodes, bool thorough) {
  held_.assign(nodes, {});
  is_touched_.assign(nodes, false);
  touched_.clear();
  sum_ = {};
  events_ = 0;
  thorough_ = thorough;
}

const char* Audit::CheckAll(const Endpoint& endpoint) {
  events_ = 0;
  sum_ = {};
  held_.assign(held_.size(), {});
  for (std::uint32_t peer = 0; peer < held_.size(); ++peer) Touch(peer);
  return CheckTouched(endpoint);
}

const char* Audit::Check(const Endpoint& endpoint) {
  if (++events_ >= kAuditAll || thorough_) return CheckAll(endpoint);
  // Where records are scarce, others may have had to give theirs: that the sum is wrong is not yet
  // an error.
  return CheckTouched(endpoint) == nullptr ? nullptr : CheckAll(endpoint);
}

const char* Audit::CheckTouched(const Endpoint& endpoint) {
  for (const std::uint32_t peer : touched_) {
    is_touched_[peer] = false;
    Endpoint::Held now;
    if (const char* wrong = endpoint.Check(static_cast<NodeId>(peer), now)) return wrong;
    Endpoint::Held& held = held_[peer];
    sum_.records += now.records - held.records;
    sum_.segments += now.segments - held.segments;
    sum_.intervals += now.intervals - held.intervals;
    sum_.beyond += now.beyond - held.beyond;
    held = now;
  }
  touched_.clear();
  return endpoint.CheckSum(sum_);
}

void World::CheckAll(std::uint32_t id) {
  if (const char* wrong = nodes_[id].audit.CheckAll(*nodes_[id].endpoint)) {
    Fail(std::string("node ") + std::to_string(id) + ": " + wrong);
  }
}

void World::CheckEnd() {
  for (std::uint32_t id = 0; id < plan_.nodes; ++id) CheckAll(id);
  if (!Quiet()) Fail("something was not delivered" + Unfinished());
  const Counters sum = Sum();
  // Each repetition needs a loss, a late packet or a time-out; nothing feeds on itself.
  const std::uint64_t cause = network_.dropped() + overflown_ + sum.bad_tag + sum.malformed +
                              sum.no_interval + sum.no_session + sum.greeting_deferred;
  if (sum.retransmitted > 500 + 20 * cause + 4 * sum.spurious) {
    Fail("retransmission storm: " + std::to_string(sum.retransmitted) + " for " +
         std::to_string(cause) + " causes, " + std::to_string(sum.spurious) + " in vain");
  }
}

Counters World::Sum() const {
  Counters sum;
  const auto add = [&sum](const Counters& one) {
    const auto* from = reinterpret_cast<const std::uint64_t*>(&one);
    auto* to = reinterpret_cast<std::uint64_t*>(&sum);
    for (std::size_t i = 0; i < sizeof(Counters) / sizeof(std::uint64_t); ++i) to[i] += from[i];
  };
  for (const Counters& one : buried_) add(one);
  for (const Node& node : nodes_) add(node.endpoint->counters());
  return sum;
}

}  // namespace sekisho::pm::sim
