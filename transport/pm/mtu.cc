// SPDX-License-Identifier: Apache-2.0
// Path MTU: docs/protocol/9-pm.md, "Path MTU".
#include <algorithm>

#include "transport/pm/draft.h"

namespace sekisho::pm {
namespace {

constexpr std::array<std::uint16_t, 9> kMtuSteps = {1200, 1452,  1472,  4052, 8952,
                                                    8972, 16384, 32768, 65507};
constexpr std::uint8_t kMtuTries = 3;
constexpr std::uint8_t kLargeLostMax = 16;
constexpr Nanos kMtuRaise = 600 * kSecond;

}  // namespace

void Endpoint::SetMtu(Session& session, std::uint16_t mtu) {
  session.mtu = mtu;
  session.congestion.OnDatagramSize(mtu);
}

void Endpoint::OnMtuProbe(Session& session, bool arrived) {
  session.mtu_in_flight = false;
  if (arrived) {
    ++session.mtu_index;
    session.mtu_tries = 0;
    const std::size_t step = std::min<std::size_t>(Once(session.mtu_index), kMtuSteps.size() - 1);
    SetMtu(session, std::min<std::uint16_t>(kMtuSteps[step],
                                            static_cast<std::uint16_t>(config_.datagram_max)));
  } else if (++session.mtu_tries >= kMtuTries) {
    session.mtu_tries = 0;
    session.mtu_raise = state_->now + kMtuRaise;
  }
}

std::uint16_t Endpoint::NextMtu(const Session& session) const {
  const std::size_t next = Once<std::size_t>(session.mtu_index) + 1;
  if (state_->now < session.mtu_raise || next >= kMtuSteps.size()) return 0;
  const auto limit = static_cast<std::uint16_t>(config_.datagram_max);
  if (session.mtu >= limit) return 0;
  return std::min(kMtuSteps[next], limit);
}

std::size_t Endpoint::BuildMtuProbe(Peer& peer, MutableBytes room) {
  Session& session = SessionOf(peer);
  const std::uint16_t mtu = peer.confirmed && !session.mtu_in_flight ? NextMtu(session) : 0;
  if (mtu == 0 || room.size() < mtu) return 0;
  Draft draft(room, mtu - kHeaderSize - kFloorRoom - TagSize(cipher_));
  draft.writer.Ping();
  const std::size_t padding = draft.room() - 1 - VarintSize(draft.limit);
  draft.writer.One(FrameKind::kPad, padding);
  draft.padding = padding;
  draft.AddPayload(padding);
  draft.eliciting = true;
  draft.carried = kCarriedMtuProbe;
  session.mtu_in_flight = true;
  built_probe_ = true;
  ++state_->counters.mtu_probes;
  return Finish(peer, draft, room);
}

// Our own interface carries nothing as long: whatever there is to be known is known.
void Endpoint::OnRefused(NodeId node, bool is_probe, Nanos now) {
  Clock(now);
  Peer& peer = peers_[node];
  if (!peer.has_session) return;
  Session& session = SessionOf(peer);
  // It carried more when the path was searched, or the peer was elsewhere.
  if (!is_probe) return OnMtuBlackHole(session);
  if (!session.mtu_in_flight) return;
  for (std::uint32_t i = session.sent.last; i != kNil; i = sent_[i].previous) {
    if ((sent_[i].carried & kCarriedMtuProbe) == 0) continue;
    // Nobody has seen its number, and nothing was built after it.
    if (sent_[i].number + 1 == session.next_number) {
      --session.next_number;
      session.follows_probe = false;
    }
    DeclareLost(peer, i, false);
    break;
  }
  session.mtu_tries = 0;
  session.mtu_raise = state_->now + kMtuRaise;
  Work(peer);
  Reschedule(peer);
}

// Time-outs in a row: perhaps only large packets vanish.
void Endpoint::OnMtuBlackHole(Session& session) {
  if (session.mtu <= kMtuSteps[0]) return;
  ++state_->counters.mtu_black_holes;
  SetMtu(session, kMtuSteps[0]);
  session.mtu_index = 0;
  session.mtu_tries = 0;
  session.mtu_raise = state_->now;
  session.large_lost = 0;
}

// A path may become narrow while small packets still arrive: then there is no time-out to notice
// it.
void Endpoint::NoteLargePacket(Session& session, std::uint32_t size, bool arrived) {
  if (size <= kMtuSteps[0]) return;
  session.large_lost = arrived ? 0 : static_cast<std::uint8_t>(session.large_lost + 1);
  if (session.large_lost >= kLargeLostMax) OnMtuBlackHole(session);
}

}  // namespace sekisho::pm
