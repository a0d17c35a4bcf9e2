// SPDX-License-Identifier: Apache-2.0
// How two nodes come to a session: docs/protocol/9-pm.md, "Greeting".
#include <algorithm>
#include <cstring>

#include "transport/pm/endpoint.h"

namespace sekisho::pm {
namespace {

constexpr Nanos kFirstRetry = 2 * kMillisecond;
constexpr Nanos kLongestRetry = 500 * kMillisecond;
constexpr std::uint8_t kGreetingTries = 12;
constexpr Nanos kCookiePeriod = 4 * kSecond;

}  // namespace

void Endpoint::StartGreeting(Peer& peer) {
  if (peer.state == PeerState::kUnknown) peer.state = PeerState::kGreeting;
  peer.nonce = SipHash128(state_->cookie_key,
                          Bytes(reinterpret_cast<const std::uint8_t*>(&++state_->nonce_counter),
                                sizeof state_->nonce_counter))[0];
  peer.greet = Peer::Greet::kHello;
  peer.greet_due = true;
  peer.greet_tries = 0;
  Work(peer);
}

// Our address is new: everyone is greeted, and believes it by the cookie.
void Endpoint::Moved(Nanos now) {
  Clock(now);
  for (Peer& peer : peers_) {
    if (peer.has_session && peer.state != PeerState::kGone) StartGreeting(peer);
  }
}

void Endpoint::GreetTimeout(Peer& peer) {
  peer.greet_deadline = kNever;
  if (peer.greet == Peer::Greet::kNone) return;
  if (peer.greet_tries >= kGreetingTries) {
    if (!MayBeAway(peer)) return Gone(peer, Reason::kSilent);
    peer.greet_tries = kGreetingTries / 2;
  }
  peer.greet_due = true;
}

std::uint64_t Endpoint::Cookie(const Address& from, NodeId node, const Greeting& greeting,
                               std::uint64_t period) const {
  std::array<std::uint8_t, 16 + 2 + 2 + 3 * 8> text;
  std::memcpy(text.data(), from.ip.data(), 16);
  std::memcpy(text.data() + 16, &from.port, 2);
  std::memcpy(text.data() + 18, &node, 2);
  std::memcpy(text.data() + 20, &greeting.incarnation, 8);
  std::memcpy(text.data() + 28, &greeting.nonce, 8);
  std::memcpy(text.data() + 36, &period, 8);
  return SipHash(state_->cookie_key, text);
}

void Endpoint::PushReply(const Reply& reply) {
  if (state_->reply_count == state_->replies.size()) {
    ++state_->counters.replies_lost;
    return;
  }
  state_->replies[(state_->reply_first + state_->reply_count++) % state_->replies.size()] = reply;
}

std::size_t Endpoint::WriteGreetingPacket(Kind kind, const Peer& peer, const Greeting& greeting,
                                          MutableBytes room) {
  constexpr std::size_t kSize = kHeaderSize + kGreetingControlSize;
  if (room.size() < kSize + kTagSize) return 0;
  WriteHeader({kind, 0, config_.context, config_.node, IdOf(peer), 0, kGreetingControlSize},
              room.first<kHeaderSize>());
  WriteGreeting(kind, greeting, room.subspan<kHeaderSize, kGreetingControlSize>());
  return Seal(peer.greeting_send, nullptr, nullptr, room, kSize);
}

// HELLO or ANSWER, whichever this peer waits for.
std::size_t Endpoint::BuildGreeting(Peer& peer, MutableBytes room) {
  Greeting greeting;
  greeting.incarnation = config_.incarnation;
  greeting.nonce = peer.nonce;
  Kind kind = Kind::kHello;
  if (peer.greet == Peer::Greet::kAnswer) {
    kind = Kind::kAnswer;
    greeting.cookie = peer.cookie;
    greeting.other_incarnation = peer.incarnation;
    greeting.credit = config_.receive_ring;
    greeting.channels = static_cast<std::uint8_t>(config_.channels - 1);
  }
  peer.greet_due = false;
  peer.hello_time = state_->now;
  peer.greet_deadline =
      state_->now +
      std::min(kFirstRetry << std::min<unsigned>(peer.greet_tries, 20), kLongestRetry);
  ++peer.greet_tries;
  return WriteGreetingPacket(kind, peer, greeting, room);
}

void Endpoint::OnGreeting(const Address& from, MutableBytes datagram, const Packet& packet) {
  Peer& peer = peers_[packet.header.source];
  if (!Open(peer.greeting_receive, nullptr, nullptr, datagram, packet)) {
    ++state_->counters.bad_tag;
    return;
  }
  Greeting greeting;
  // A HELLO may be padded: whoever asks learns what the path carries.
  const bool may_be_padded = packet.header.kind == Kind::kHello;
  if ((!packet.payload.empty() && !may_be_padded) ||
      !ParseGreeting(packet.header.kind, packet.control, greeting)) {
    ++state_->counters.bad_frames;
    return;
  }
  switch (packet.header.kind) {
    case Kind::kHello:
      return OnHello(from, peer, greeting);
    case Kind::kChallenge:
      return OnChallenge(peer, greeting);
    case Kind::kAnswer:
      return OnAnswer(from, peer, greeting);
    default:
      return OnWelcome(peer, greeting);
  }
}

void Endpoint::OnHello(const Address& from, Peer& peer, const Greeting& greeting) {
  if (greeting.incarnation < peer.incarnation) {
    ++state_->counters.stale_greeting;
    return;
  }
  Challenge(from, peer, greeting);
}

void Endpoint::Challenge(const Address& from, const Peer& peer, const Greeting& greeting) {
  const auto period = static_cast<std::uint64_t>(state_->now / kCookiePeriod);
  Greeting reply = greeting;
  reply.cookie = Cookie(from, IdOf(peer), greeting, period);
  reply.incarnation = config_.incarnation;
  reply.credit = config_.receive_ring;
  reply.channels = static_cast<std::uint8_t>(config_.channels - 1);
  PushReply({Kind::kChallenge, IdOf(peer), from, reply});
}

void Endpoint::OnChallenge(Peer& peer, const Greeting& greeting) {
  Session& session = SessionOf(peer);
  if (peer.greet == Peer::Greet::kAnswer && greeting.nonce == peer.nonce &&
      greeting.incarnation == peer.incarnation) {
    // It is there, and not ready for us yet: this does not count as silence.
    peer.cookie = greeting.cookie;
    peer.silence = 0;
    peer.greet_tries = std::min<std::uint8_t>(peer.greet_tries, kGreetingTries / 2);
    return;
  }
  if (peer.greet != Peer::Greet::kHello || greeting.nonce != peer.nonce ||
      greeting.incarnation < peer.incarnation) {
    ++state_->counters.stale_greeting;
    return;
  }
  peer.silence = 0;
  if (peer.has_session && greeting.incarnation == peer.incarnation) {
    // A suspect was asked, and it still is who it was.
    // It learns our address from the answer, if that is new.
    peer.cookie = greeting.cookie;
    peer.greet = Peer::Greet::kAnswer;
    peer.greet_due = true;
    peer.greet_tries = 0;
    Work(peer);
    return;
  }
  if (peer.has_session && MustKeepSession(peer)) {
    NoteReplaced(peer);
    peer.greet_tries = std::min<std::uint8_t>(peer.greet_tries, kGreetingTries / 2);
    return;
  }
  if (greeting.channels != config_.channels - 1) {
    Gone(peer, Reason::kRefused);
    return;
  }
  const Nanos rtt = state_->now - peer.hello_time;
  const bool clear = peer.greet_tries == 1;  // else which HELLO is answered?
  StartSession(peer, greeting);
  if (clear && rtt > 0) session.rtt.Sample(rtt, 0, state_->now);
  peer.cookie = greeting.cookie;
  peer.greet = Peer::Greet::kAnswer;
  peer.greet_due = true;
  peer.greet_tries = 0;
}

void Endpoint::OnAnswer(const Address& from, Peer& peer, const Greeting& greeting) {
  const auto period = static_cast<std::uint64_t>(state_->now / kCookiePeriod);
  if (greeting.cookie != Cookie(from, IdOf(peer), greeting, period) &&
      greeting.cookie != Cookie(from, IdOf(peer), greeting, period - 1)) {
    ++state_->counters.bad_cookie;
    // Too old, if our clock jumped or the answer was long on its way: another, to that address.
    if (greeting.incarnation >= peer.incarnation) Challenge(from, peer, greeting);
    return;
  }
  if (greeting.other_incarnation != config_.incarnation ||
      greeting.incarnation < peer.incarnation) {
    ++state_->counters.stale_greeting;
    return;
  }
  const bool known = peer.has_session && greeting.incarnation == peer.incarnation;
  if (known && peer.state == PeerState::kGone) return;  // final for these two incarnations
  if (!known) {
    if (peer.has_session && MustKeepSession(peer)) {
      NoteReplaced(peer);  // the old session's messages first; ANSWER is repeated
      return Challenge(from, peer, greeting);
    }
    if (greeting.channels != config_.channels - 1) {
      Gone(peer, Reason::kRefused);
      return;
    }
    StartSession(peer, greeting);
  }
  if (known && !(peer.address == from)) OnMtuBlackHole(SessionOf(peer));  // another path
  peer.address = from;
  Greeting reply = greeting;
  reply.incarnation = config_.incarnation;
  PushReply({Kind::kWelcome, IdOf(peer), from, reply});
}

void Endpoint::OnWelcome(Peer& peer, const Greeting& greeting) {
  if (peer.greet != Peer::Greet::kAnswer || greeting.nonce != peer.nonce ||
      greeting.incarnation != peer.incarnation) {
    ++state_->counters.stale_greeting;
    return;
  }
  peer.greet = Peer::Greet::kNone;
  peer.greet_deadline = kNever;
  peer.confirmed = true;
  Work(peer);
}

// Its messages first; and a program that was left behind may still store what came in it.
bool Endpoint::MustKeepSession(const Peer& peer) const {
  if (keeps_sessions_) return true;
  for (std::size_t channel = 0; channel < config_.channels; ++channel) {
    const ReceiveStream& in = receive_streams_[StreamIndex(IdOf(peer), channel)];
    if (in.ready || in.is_open()) return true;
  }
  return false;
}

// So that it is known at every instruction to be of a session that is over (RebuildPeer).
void Endpoint::EndSendStream(SendStream& out) {
  out.written = 0;
  Publish();
  out.cut = 0;
  Publish();
  out.acked = 0;
  Publish();
  out = SendStream();
}

// A session with greeting.incarnation of the peer; if there was one before, everything of it ends
// here.
void Endpoint::StartSession(Peer& peer, const Greeting& greeting) {
  Session& session = SessionOf(peer);
  const NodeId node = IdOf(peer);
  const bool restarted = peer.has_session;
  peer.has_session = false;  // until all of it is there: we may be killed in between
  Publish();
  if (restarted) ForgetFlight(peer);
  Peer fresh;
  fresh.address = peer.address;
  fresh.greeting_send = peer.greeting_send;
  fresh.greeting_receive = peer.greeting_receive;
  fresh.nonce = peer.nonce;
  fresh.is_awaited = peer.is_awaited;
  fresh.session = peer.session + 1;
  fresh.in_work = peer.in_work;
  fresh.work_next = peer.work_next;
  fresh.work_previous = peer.work_previous;
  peer = fresh;
  session = Session();
  session.largest_time = state_->now;

  peer.state = PeerState::kUp;
  peer.reason = restarted ? Reason::kRestarted : Reason::kNone;
  peer.incarnation = greeting.incarnation;
  const std::uint64_t own = config_.incarnation;
  session.session_send =
      SessionKey(config_.key, {config_.context, config_.node, node, own, peer.incarnation});
  session.session_receive =
      SessionKey(config_.key, {config_.context, node, config_.node, peer.incarnation, own});
  session.congestion.Init(config_.fixed_window, session.mtu, state_->now);
  session.reorder_calm = state_->now;
  session.grant_limit = session.granted = kFreeAllowance;
  for (std::size_t channel = 0; channel < config_.channels; ++channel) {
    const std::uint32_t stream = StreamIndex(node, channel);
    if (restarted) {
      EndSendStream(send_streams_[stream]);
      receive_streams_[stream] = ReceiveStream();
    }
    send_streams_[stream].byte_limit = greeting.credit;
    receive_streams_[stream].byte_limit = config_.receive_ring;
  }
  Publish();
  peer.has_session = true;
  peer.gang_due = state_->gang_active;
  ++state_->counters.sessions;
  Work(peer);
  if (state_->gang_active) StepGang();  // it may lead again
}

}  // namespace sekisho::pm
