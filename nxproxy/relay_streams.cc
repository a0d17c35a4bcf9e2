// SPDX-License-Identifier: Apache-2.0
// Peers, spares and targets, and joining two of them.
#include <cerrno>

#include <sys/socket.h>

#include "common/log.h"
#include "nxproxy/errors.h"
#include "nxproxy/relay_parts.h"

namespace sekisho::nxproxy {
namespace {

constexpr int64_t kLinger_ms = 500;

wire::Code CodeOf(int error) {
  switch (error) {
    case ECONNREFUSED:
      return wire::Code::kTargetRefused;
    case ETIMEDOUT:
      return wire::Code::kTargetTimeout;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
      return wire::Code::kExhausted;
    default:
      return wire::Code::kTargetUnreachable;
  }
}

bool SendWhole(int fd, const std::string& bytes) {
  return send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// What the peer has sent already.  An end, an error or an urgent byte stays for the stream to find.
void ReadEarly(int fd, std::string& bytes) {
  char buffer[kEarlyBytes];
  if (bytes.size() < kEarlyBytes && !IsAtMark(fd)) {
    const ssize_t got = recv(fd, buffer, kEarlyBytes - bytes.size(), MSG_DONTWAIT);
    bytes.append(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
}

wire::Address AddressOf(const Reservation& reservation) {
  return wire::ParseAddress(wire::JoinHostPort(reservation.ip, reservation.port))
      .value_or(wire::Address{});
}

}  // namespace

void Relay::Say(const Refusal& refusal, const std::string& who) {
  refusals_.Add(refusal, who, now_ms_);
}

bool Relay::IsOwn(const wire::Address& address) const {
  if (address.ip == listen_.ip) {
    return true;
  }
  for (const wire::Address& one : own_) {
    if (one.ip == address.ip) {
      return true;
    }
  }
  return !config_.address().empty() && wire::IpText(address) == config_.address();
}

void Relay::RefuseSocket(Descriptor socket, bool wants_opening, const Refusal& refusal) {
  if (!wants_opening ||
      !SendWhole(socket.get(), wire::Encode(wire::Opening{.code = refusal.code}))) {
    Reset(std::move(socket));
    return;
  }
  // A close with unread bytes would be a reset, which may overtake the opening.
  shutdown(socket.get(), SHUT_WR);
  lingering_.emplace_back(now_ms_ + kLinger_ms, std::move(socket));
}

void Relay::Refuse(Waiting waiting, const Refusal& refusal) {
  Say(refusal, wire::IpText(waiting.address));
  if (!waiting.owner.empty()) {
    registry_.StreamEnded(waiting.owner);
  }
  if (Endpoint* endpoint = registry_.FindEndpoint(waiting.endpoint); endpoint != nullptr) {
    ++endpoint->refused;
  }
  const auto doors = doors_.find(waiting.session);
  if (waiting.session != 0 && doors != doors_.end() && doors->second.client != nullptr) {
    wire::Message failed = wire::ErrorMessage(0, refusal.code, refusal.words, refusal.rule);
    failed.verb = wire::Verb::kFailed;
    failed.counter = waiting.counter;
    doors->second.client->control->Send(failed);
  }
  RefuseSocket(std::move(waiting.socket), waiting.wants_opening, refusal);
}

void Relay::PeerCame(uint64_t id, Descriptor socket, const wire::Address& peer) {
  Endpoint* found = registry_.FindEndpoint(id);
  if (found == nullptr) {  // it ended in this very turn of the loop
    Reset(std::move(socket));
    return;
  }
  Endpoint& endpoint = *found;
  Waiting waiting;
  waiting.socket = std::move(socket);
  waiting.address = peer;
  waiting.endpoint = id;
  if (!endpoint.reserved.allow.empty() && !Contains(endpoint.allow, peer)) {
    Refuse(std::move(waiting), errors::NotAllowed(wire::IpText(peer)));
    return;
  }
  Await(std::move(waiting), endpoint);
}

// `waiting` gets a spare of the endpoint's session, or a place in the queue.
void Relay::Await(Waiting waiting, Endpoint& endpoint) {
  if (const auto refusal = registry_.TakeStream(endpoint.reserved.caller.owner)) {
    Refuse(std::move(waiting), *refusal);
    return;
  }
  waiting.owner = endpoint.reserved.caller.owner;
  waiting.stream = next_stream_++;
  waiting.dialled = AddressOf(endpoint.reserved);
  if (const auto doors = doors_.find(endpoint.session); doors != doors_.end()) {
    std::deque<Descriptor>& spares = doors->second.spares;
    while (!spares.empty()) {
      Descriptor spare = std::move(spares.front());
      spares.pop_front();
      if (IsQuiet(spare.get()) && Open(waiting, spare)) {
        return;
      }
    }
  }
  std::deque<Waiting>& queue = waiting_[endpoint.reserved.id];
  const size_t backlog = endpoint.reserved.backlog > 0
                             ? std::min<size_t>(endpoint.reserved.backlog, limits_.pending)
                             : limits_.pending;
  if (queue.size() >= backlog) {
    Refuse(std::move(waiting), errors::BacklogFull(backlog));
    return;
  }
  waiting.deadline_ms = now_ms_ + limits_.pending_s * 1000;
  Announce(endpoint, waiting);
  queue.push_back(std::move(waiting));
}

void Relay::Announce(const Endpoint& endpoint, const Waiting& waiting) {
  const auto doors = doors_.find(endpoint.session);
  if (doors == doors_.end() || doors->second.client == nullptr) {
    return;
  }
  wire::Message announce;
  announce.verb = wire::Verb::kAnnounce;
  announce.endpoint = endpoint.reserved.id;
  announce.address = wire::ToText(waiting.address);
  announce.stream = waiting.stream;
  doors->second.client->control->Send(announce);
}

// The opening to both who want one, then only the stream's bytes.  False if the inside has gone.  Bytes that
// have come go with the inside's opening: one packet and one wake-up less for a stream whose peer speaks first.
bool Relay::Open(Waiting& waiting, Descriptor& inside) {
  wire::Opening opening;
  opening.peer = waiting.address;
  opening.local = waiting.dialled;
  opening.endpoint = waiting.endpoint;
  opening.stream = waiting.stream;
  ReadEarly(waiting.socket.get(), waiting.first);
  const bool is_early = waiting.first.size() <= kEarlyBytes;
  if (!SendWhole(inside.get(), wire::Encode(opening) + (is_early ? waiting.first : std::string()))) {
    return false;
  }
  if (waiting.wants_opening) {
    opening.peer = waiting.dialled;
    opening.local = LocalAddress(waiting.socket.get());
    SendWhole(waiting.socket.get(), wire::Encode(opening));  // if not, the stream ends at once
  }
  const size_t early = waiting.first.size();
  auto stream = std::make_unique<Stream>(std::move(waiting.socket), std::move(inside),
                                         is_early ? std::string() : std::move(waiting.first));
  stream->id = waiting.stream;
  stream->endpoint = waiting.endpoint;
  stream->owner_traffic = registry_.AccountOf(waiting.owner).traffic;
  if (Endpoint* endpoint = registry_.FindEndpoint(waiting.endpoint); endpoint != nullptr) {
    stream->endpoint_traffic = endpoint->traffic;
    ++endpoint->streams;
    ++endpoint->streams_total;
  }
  stream->Count(0, early);
  Launch(std::move(stream), early);
  return true;
}

// A waiting peer of one of the session's endpoints: that stream, or (0) any.
bool Relay::TakeWaiting(Session& session, uint64_t stream, Waiting& out) {
  for (const uint64_t endpoint : session.endpoints) {
    const auto at = waiting_.find(endpoint);
    if (at == waiting_.end()) {
      continue;
    }
    for (auto one = at->second.begin(); one != at->second.end(); ++one) {
      if (stream == 0 || one->stream == stream) {
        out = std::move(*one);
        at->second.erase(one);
        if (at->second.empty()) {
          waiting_.erase(at);
        }
        return true;
      }
    }
  }
  return false;
}

void Relay::AcceptTicket(Session& session, uint64_t stream, Descriptor socket) {
  Waiting waiting;
  if ((stream != 0 && TakeWaiting(session, stream, waiting)) || TakeWaiting(session, 0, waiting)) {
    if (!Open(waiting, socket)) {
      waiting_[waiting.endpoint].push_front(std::move(waiting));
    }
    return;
  }
  std::deque<Descriptor>& spares = doors_[session.id].spares;
  spares.push_back(std::move(socket));
  if (spares.size() > limits_.spares) {
    spares.pop_front();
  }
}

void Relay::ConnectTicket(Session& session, const wire::Preface& preface, Waiting waiting) {
  const bool is_upstream = config_.has_upstream() && preface.target == config_.upstream().address();
  const auto target = is_upstream ? std::optional(upstream_) : wire::ParseAddress(preface.target);
  if (is_draining_) {
    Refuse(std::move(waiting), errors::Draining());
    return;
  }
  if (!target || !target->is_set()) {
    Refuse(std::move(waiting), errors::BadTarget(preface.target));
    return;
  }
  Endpoint* endpoint = IsOwn(*target) && !is_upstream ? registry_.FindPort(target->port) : nullptr;
  if (endpoint != nullptr) {
    waiting.endpoint = endpoint->reserved.id;
    auto refusal = registry_.MayReach(*endpoint, session.caller);
    if (!refusal && !endpoint->reserved.allow.empty() &&
        !Contains(endpoint->allow, waiting.address)) {
      refusal = errors::NotAllowed(wire::IpText(waiting.address));
    }
    if (refusal) {
      Refuse(std::move(waiting), *refusal);
      return;
    }
    if (preface.from.is_set() && session.caller.SharesWith(endpoint->reserved.caller)) {
      waiting.address = preface.from;
    }
    Await(std::move(waiting), *endpoint);
    return;
  }
  MaybeRefusal refusal;
  if (!is_upstream) {
    refusal = !config_.address().empty() && wire::IpText(*target) == config_.address() &&
                      target->port != port_
                  ? errors::NoSuchEndpoint(preface.target)
                  : policy_.ConnectOut(session.caller, *target, own_);
  }
  if (!refusal) {
    refusal = registry_.TakeStream(session.caller.owner);
  }
  if (refusal) {
    Refuse(std::move(waiting), *refusal);
    return;
  }
  waiting.owner = session.caller.owner;
  waiting.stream = next_stream_++;
  waiting.deadline_ms = now_ms_ + limits_.connect_ms;
  auto dial = std::make_unique<Dial>(*this);
  dial->address = *target;
  dial->waiting = std::move(waiting);
  dial->target = BeginConnect(*target);
  if (!dial->target.is_open()) {
    Refuse(std::move(dial->waiting), errors::Target(CodeOf(errno), preface.target));
    return;
  }
  TuneSocket(dial->target.get(), limits_.user_timeout_s);
  poller_.Add(dial->target.get(), EPOLLOUT, dial.get());
  Dial* raw = dial.get();
  dials_.emplace(raw, std::move(dial));
}

void Relay::Dialled(Dial& dial, int error) {
  const auto at = dials_.find(&dial);
  if (at == dials_.end()) {
    return;
  }
  const std::shared_ptr<Dial> done(std::move(at->second));
  dials_.erase(at);
  dead_.push_back(done);
  poller_.Remove(dial.target.get());
  if (error != 0) {
    Refuse(std::move(dial.waiting), errors::Target(CodeOf(error), wire::ToText(dial.address)));
    return;
  }
  Waiting& waiting = dial.waiting;
  if (waiting.wants_opening) {
    SendWhole(waiting.socket.get(),
              wire::Encode(wire::Opening{.peer = dial.address,
                                         .local = LocalAddress(dial.target.get()),
                                         .stream = waiting.stream}));
  }
  const size_t early = waiting.first.size();
  auto stream = std::make_unique<Stream>(std::move(waiting.socket), std::move(dial.target),
                                         std::move(waiting.first));
  stream->id = waiting.stream;
  stream->owner_traffic = registry_.AccountOf(waiting.owner).traffic;
  Launch(std::move(stream), early);
}

void Relay::ExpireWaiting(int64_t now_ms) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    auto& queue = at->second;
    const bool has_endpoint = registry_.FindEndpoint(at->first) != nullptr;
    while (!queue.empty() && (!has_endpoint || queue.front().deadline_ms <= now_ms)) {
      Waiting waiting = std::move(queue.front());
      queue.pop_front();
      Refuse(std::move(waiting), errors::NobodyHome());
    }
    at = queue.empty() ? waiting_.erase(at) : std::next(at);
  }
  while (!dials_.empty()) {
    Dial* late = nullptr;
    for (const auto& [dial, owned] : dials_) {
      if (dial->waiting.deadline_ms <= now_ms) {
        late = dial;
        break;
      }
    }
    if (late == nullptr) {
      break;
    }
    Dialled(*late, ETIMEDOUT);
  }
  while (!lingering_.empty() && lingering_.front().first <= now_ms) {
    lingering_.pop_front();
  }
}

void Relay::SweepSpares() {
  for (auto& [session, doors] : doors_) {
    std::deque<Descriptor> good;
    for (Descriptor& spare : doors.spares) {
      if (IsQuiet(spare.get())) {
        good.push_back(std::move(spare));
      }
    }
    doors.spares = std::move(good);
  }
}

}  // namespace sekisho::nxproxy
