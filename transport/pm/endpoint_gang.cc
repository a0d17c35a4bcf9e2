// SPDX-License-Identifier: Apache-2.0
// Network preemption: what this node says of the job, and what it announces where it leads.
#include <algorithm>

#include "transport/pm/endpoint.h"

namespace sekisho::pm {
namespace {

constexpr int kStepsMax = 8;  // in one call: more than from one running job to the next

}  // namespace

// The lowest node that has not left.
NodeId Endpoint::Leader() const {
  for (NodeId node = 0; node < config_.nodes; ++node) {
    if (node == config_.node) return node;
    if (peers_[node].state != PeerState::kGone && !peers_[node].is_replaced) return node;
  }
  return config_.node;
}

// All that was sent was acknowledged; what was accepted and never sent may wait.
bool Endpoint::Flushed() const {
  for (NodeId node = 0; node < config_.nodes; ++node) {
    if (peers_[node].state == PeerState::kGone || peers_[node].is_replaced) continue;
    for (const SendStream& out : send_streams(node)) {
      if (out.acked != out.cut) return false;
    }
  }
  return true;
}

// The program waits, and neither a message for it nor one of it is here.
bool Endpoint::Idle() const {
  if (!state_->program_waits || HasMessage()) return false;
  for (std::uint32_t stream = 0; stream < send_streams_.size(); ++stream) {
    if (receive_streams_[stream].is_open()) return false;
    if (peers_[stream / config_.channels].state == PeerState::kGone) continue;
    if (send_streams_[stream].written != send_streams_[stream].acked) return false;
  }
  return true;
}

void Endpoint::TellGang(Peer& peer) {
  if (peer.state == PeerState::kGone) return;
  peer.gang_due = true;
  if (peer.state == PeerState::kUnknown) StartGreeting(peer);
  Work(peer);
}

// A stopped program reads nothing, so the session with a node that was started anew must wait; that
// node cannot lead us until then.  What is in flight to the old one keeps no record from others,
// and whether the new one still lives is asked.
void Endpoint::NoteReplaced(Peer& peer) {
  ++state_->counters.greeting_deferred;
  if (peer.is_replaced) return;
  peer.is_replaced = true;
  GiveUpFlight(peer, 0);
  if (peer.greet == Peer::Greet::kNone) StartGreeting(peer);
  if (state_->gang_active) StepGang();
}

// Of a job that is settled, and that nobody wants to go on, a silent node may be in a file, to be
// restored elsewhere.
bool Endpoint::MayBeAway(const Peer& peer) const {
  const GangNote& own = state_->gang;
  return peer.has_session && PhaseOf(own.wave) == GangPhase::kSettled && own.asked <= own.wave &&
         own.joined <= own.wave;
}

// A lower node was started anew, and may lead the job without a way to tell us: this one has to,
// and it may be started anew before it does.
bool Endpoint::LeadsInstead(const Peer& peer) const {
  if (!paused() || Leader() != IdOf(peer)) return false;
  for (NodeId node = 0; node < IdOf(peer); ++node) {
    if (peers_[node].is_replaced) return true;
  }
  return false;
}

// The job's next wave needs this peer to say something: of the leader what everyone wants, of the
// others what the leader waits for.
bool Endpoint::HoldsGangUp(const Peer& peer) const {
  if (!state_->gang_active) return false;
  const GangNote& own = state_->gang;
  const std::uint64_t wave = own.wave;
  const NodeId leader = Leader();
  if (leader != config_.node) {
    return IdOf(peer) == leader && (own.asked > wave || own.joined > wave || own.reported > wave);
  }
  if (peer.is_replaced) return false;
  switch (PhaseOf(wave)) {
    case GangPhase::kRunning:
    case GangPhase::kSettled:
      return own.joined > wave && peer.gang.joined <= wave;
    case GangPhase::kStopping:
    case GangPhase::kFlushed:
      return own.reported > wave && peer.gang.reported <= wave;
  }
  return false;
}

void Endpoint::SetWave(std::uint64_t wave) {
  GangNote& own = state_->gang;
  const bool goes = paused() && PhaseOf(wave) == GangPhase::kRunning;
  own.wave = wave;
  // Everybody waits for what is unacknowledged.
  const bool stops = PhaseOf(wave) == GangPhase::kStopping;
  if (goes) state_->went_on = state_->now;
  if (!goes && !stops) return;
  for (Peer& peer : peers_) {
    if (!peer.has_session) continue;
    Session& session = SessionOf(peer);
    if (stops && session.ack_deadline != kNever) session.ack_now = true;
    Work(peer);
  }
}

// What can be reported now, what can be announced; whoever has to know is told.
void Endpoint::StepGang() {
  GangNote& own = state_->gang;
  const GangNote before = state_->gang_told;
  const NodeId leader = Leader();
  own.leader = leader;
  for (int step = 0; step < kStepsMax; ++step) {
    if (PhaseOf(own.wave) == GangPhase::kStopping && own.reported <= own.wave && Flushed()) {
      own.reported = own.wave + 1;
    }
    // A node that the leader let in only now was not asked before.
    if (PhaseOf(own.wave) == GangPhase::kFlushed && own.reported <= own.wave && Flushed()) {
      own.idle = Idle() ? 1 : 0;
      Publish();
      own.reported = own.wave + 1;
    }
    if (leader != config_.node) break;
    GangView all;
    for (NodeId node = 0; node < config_.nodes; ++node) {
      if (node == config_.node) {
        all.Add(own);
      } else if (peers_[node].state == PeerState::kGone || peers_[node].is_replaced) {
        ++all.gone;
      } else {
        all.Add(peers_[node].gang);
      }
    }
    const std::uint64_t next = NextWave(own.wave, all);
    if (next == own.wave) break;
    if (PhaseOf(next) == GangPhase::kSettled) {
      own.idle = static_cast<std::uint32_t>(all.idle);
      own.gone = static_cast<std::uint32_t>(all.gone);
    }
    SetWave(next);
  }
  if (own == before) return;
  state_->gang_told = own;
  const bool leads_anew = own.leader != before.leader;
  const bool leads = leader == config_.node;
  // That we know the newest wave says our acknowledgement.
  const bool has_news = leads_anew || own.asked != before.asked || own.joined != before.joined ||
                        own.reported != before.reported;
  const bool has_wave = own.wave != before.wave || leads_anew;
  for (NodeId node = 0; node < config_.nodes; ++node) {
    if (node == config_.node) continue;
    // Who has lost the one that we follow takes us for the leader, or leads in its own eyes.
    const bool follows = peers_[node].gang.leader == config_.node;
    const bool leads_too = peers_[node].gang.leader == node;
    const bool hears_waves = node != leader && (leads || follows || leads_too);
    // Nor does who was followed, or did follow, go on believing it.
    const bool was_involved = node == before.leader || before.leader == config_.node;
    const bool hears_news = node == leader || leads_too || (leads_anew && was_involved);
    if ((has_wave && hears_waves) || (has_news && hears_news)) TellGang(peers_[node]);
  }
}

void Endpoint::OnGang(Peer& peer, const GangNote& said, std::uint64_t number) {
  const GangNote note = Bounded(said, state_->gang.wave);
  GangNote& known = peer.gang;
  known.asked = std::max(known.asked, note.asked);
  known.joined = std::max(known.joined, note.joined);
  if (note.reported > known.reported) known.idle = std::min(note.idle, 1u);
  known.reported = std::max(known.reported, note.reported);
  known.wave = std::max(known.wave, note.wave);
  const std::uint32_t followed = known.leader;
  if (number > peer.gang_number) known.leader = note.leader;
  peer.gang_number = std::max(peer.gang_number, number);
  state_->gang_active = true;
  state_->gang.asked = std::max(state_->gang.asked, note.asked);
  if (note.wave > state_->gang.wave) {
    if (PhaseOf(note.wave) == GangPhase::kSettled) {
      state_->gang.idle = note.idle;
      state_->gang.gone = note.gone;
    }
    SetWave(note.wave);
  }
  StepGang();
  const bool leads_now = known.leader == IdOf(peer) && followed != known.leader;
  // Else it takes us for the leader, or was started anew.
  if (note.wave < state_->gang.wave || leads_now) TellGang(peer);
}

void Endpoint::AskGang(bool stop, Nanos now) {
  Clock(now);
  GangNote& own = state_->gang;
  // To go on takes back a stop, too, of which the leader has not heard yet.
  const std::uint64_t newest = std::max(own.wave, own.asked);
  if (stop ? paused() : PhaseOf(newest) == GangPhase::kRunning) return;
  state_->gang_active = true;
  own.asked = std::max(own.asked, stop ? own.wave + 1 : NextRunning(newest));
  StepGang();
}

void Endpoint::JoinGang(bool stop, Nanos now) {
  Clock(now);
  if (PhaseOf(state_->gang.wave) != (stop ? GangPhase::kRunning : GangPhase::kSettled)) return;
  state_->gang_active = true;
  state_->gang.joined = std::max(state_->gang.joined, state_->gang.wave + 1);
  StepGang();
}

void Endpoint::RebuildGang(const Endpoint& torn) {
  state_->gang = Bounded(torn.state_->gang, 0);
  if (state_->gang.wave > kWaveMax) Spoiled();
  state_->gang_active = torn.state_->gang_active;
  state_->program_waits = torn.state_->program_waits;
}

}  // namespace sekisho::pm
