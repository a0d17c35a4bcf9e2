// SPDX-License-Identifier: Apache-2.0
// What comes in at the one port: TLS or a preface, within its time.
#include <cerrno>

#include <sys/socket.h>

#include "common/log.h"
#include "nxproxy/errors.h"
#include "nxproxy/relay_parts.h"
#include "nxproxy/wire/ticket.h"

namespace sekisho::nxproxy {

void Relay::Accepted(Descriptor socket, const wire::Address& peer) {
  if (is_draining_) {
    Reset(std::move(socket));
    return;
  }
  std::string bytes;
  if (Sniff(socket, peer, bytes)) {  // nearly always: the listener waits for the first bytes
    return;
  }
  MakeRoom(peer);
  auto greeting = std::make_unique<Greeting>(*this, std::move(socket), peer, std::move(bytes));
  Greeting* raw = greeting.get();
  raw->place = greetings_.insert(greetings_.end(), std::move(greeting));
  ++greeting_by_peer_[wire::IpText(peer)];
}

// The oldest goes: of the same address if that has too many, else of all.
void Relay::MakeRoom(const wire::Address& peer) {
  const auto held = greeting_by_peer_.find(wire::IpText(peer));
  const bool is_crowd =
      held != greeting_by_peer_.end() && held->second >= limits_.unfinished_per_peer;
  if (!is_crowd && greetings_.size() < limits_.unfinished) {
    return;
  }
  for (const auto& greeting : greetings_) {
    if (!is_crowd || greeting->peer.ip == peer.ip) {
      Say(errors::Crowded(), wire::IpText(greeting->peer));
      DropGreeting(*greeting);
      return;
    }
  }
}

void Relay::DropGreeting(Greeting& greeting) {
  const auto held = greeting_by_peer_.find(wire::IpText(greeting.peer));
  if (held != greeting_by_peer_.end() && --held->second == 0) {
    greeting_by_peer_.erase(held);
  }
  dead_.push_back(std::shared_ptr<Greeting>(std::move(*greeting.place)));
  greetings_.erase(greeting.place);
  if (greeting.socket.is_open()) {
    poller_.Remove(greeting.socket.get());
    Reset(std::move(greeting.socket));
  }
}

void Relay::MoreOf(Greeting& greeting) {
  if (!greeting.socket.is_open()) {
    return;
  }
  poller_.Remove(greeting.socket.get());
  if (Sniff(greeting.socket, greeting.peer, greeting.bytes)) {
    DropGreeting(greeting);
  } else {
    poller_.Add(greeting.socket.get(), EPOLLIN | EPOLLRDHUP, &greeting);
  }
}

// Reads what there is.  True if the connection is somebody else's now, or closed; false: more is
// needed.
bool Relay::Sniff(Descriptor& socket, const wire::Address& peer, std::string& bytes) {
  char buffer[16 * 1024];
  for (;;) {
    const ssize_t got = recv(socket.get(), buffer, sizeof buffer, 0);
    if (got < 0 && errno == EAGAIN) {
      return false;
    }
    if (got <= 0) {
      Reset(std::move(socket));
      return true;
    }
    bytes.append(buffer, static_cast<size_t>(got));
    const bool is_tls = static_cast<uint8_t>(bytes[0]) == wire::kTlsByte;
    const std::optional<size_t> length = is_tls ? 1 : wire::PrefaceLength(bytes);
    if (!length || *length > bytes.size()) {
      continue;
    }
    if (*length == 0) {
      Say(errors::Protocol("neither TLS nor a preface"), wire::IpText(peer));
      Reset(std::move(socket));
    } else if (is_tls) {
      StartControl(std::move(socket), peer, bytes);
    } else {
      TakePreface(std::move(socket), peer, bytes, *length);
    }
    return true;
  }
}

void Relay::StartControl(Descriptor socket, const wire::Address& peer, std::string_view first) {
  ++handshakes_;
  // Those that have not said HELLO yet are greeting as well.
  size_t all = 0;
  size_t of_peer = 0;
  Client* oldest = nullptr;
  Client* oldest_of_peer = nullptr;
  for (const auto& [one, owned] : clients_) {
    if (one->deadline_ms == 0) {
      continue;
    }
    ++all;
    if (oldest == nullptr || one->deadline_ms < oldest->deadline_ms) {
      oldest = one;
    }
    if (one->peer.ip == peer.ip) {
      ++of_peer;
      if (oldest_of_peer == nullptr || one->deadline_ms < oldest_of_peer->deadline_ms) {
        oldest_of_peer = one;
      }
    }
  }
  if (of_peer >= limits_.unfinished_per_peer || all >= limits_.unfinished) {
    Client* victim = of_peer >= limits_.unfinished_per_peer ? oldest_of_peer : oldest;
    Say(errors::Crowded(), wire::IpText(victim->peer));
    victim->control->Finish("crowded out");
  }
  auto client = std::make_unique<Client>();
  Client* raw = client.get();
  raw->peer = peer;
  raw->deadline_ms = now_ms_ + limits_.greeting_ms;
  clients_.emplace(raw, std::move(client));
  raw->control = std::make_unique<Control>(
      poller_, std::move(socket), TlsChannel(*server_tls_, true),
      Control::Events{
          .established = [] {},
          .received = [this, raw](wire::Message message) { Received(*raw, std::move(message)); },
          .lost = [this, raw](const std::string& why) { Lost(*raw, why); }});
  raw->control->heard_ms = now_ms_;
  raw->control->Start(first);
}

void Relay::TakePreface(Descriptor socket, const wire::Address& peer, std::string_view bytes,
                        size_t length) {
  const auto tagged = wire::DecodePreface(bytes.substr(0, length));
  if (!tagged) {
    Say(errors::Protocol("a broken preface"), wire::IpText(peer));
    Reset(std::move(socket));
    return;
  }
  const wire::Preface& preface = tagged->preface;
  Session* session = registry_.FindSession(preface.session);
  if (session == nullptr || !wire::IsSealedWith(*tagged, session->key)) {
    const Refusal refusal =
        errors::TicketInvalid(session == nullptr ? "no such session" : "the seal is wrong");
    Say(refusal, wire::IpText(peer));
    RefuseSocket(std::move(socket), preface.wants_opening || preface.kind == wire::Kind::kAccept,
                 refusal);
    return;
  }
  if (!session->tickets.Use(preface.counter)) {
    Say(errors::TicketUsed(), wire::IpText(peer));
    RefuseSocket(std::move(socket), preface.wants_opening || preface.kind == wire::Kind::kAccept,
                 errors::TicketUsed());
    return;
  }
  if (preface.kind == wire::Kind::kAccept) {
    if (bytes.size() != length) {
      Say(errors::Protocol("bytes behind an ACCEPT"), wire::IpText(peer));
      Reset(std::move(socket));
      return;
    }
    AcceptTicket(*session, preface.stream, std::move(socket));
    return;
  }
  Waiting waiting;
  waiting.socket = std::move(socket);
  waiting.address = peer;
  waiting.first = bytes.substr(length);
  waiting.wants_opening = preface.wants_opening;
  waiting.session = session->id;
  waiting.counter = preface.counter;
  ConnectTicket(*session, preface, std::move(waiting));
}

}  // namespace sekisho::nxproxy
