// SPDX-License-Identifier: Apache-2.0
// The control connection's messages, verb by verb.
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "common/log.h"
#include "common/refusal.h"
#include "nxproxy/errors.h"
#include "nxproxy/relay_parts.h"

namespace sekisho::nxproxy {
namespace {

using wire::Message;
using wire::Verb;

constexpr size_t kPageBytesMax = 50 * 1024;  // of one REPORT
constexpr uint64_t kOthersMost = 256;        // that come along with one answer

std::string StatusText(const absl::Status& status) { return sekisho::Message(status); }

Message Answer(Verb verb, uint32_t id) {
  Message message;
  message.verb = verb;
  message.id = id;
  return message;
}

std::string AddressText(const Reservation& reserved) {
  return wire::JoinHostPort(reserved.ip, reserved.port);
}

}  // namespace

void Relay::Received(Client& client, Message message) {
  client.control->heard_ms = now_ms_;
  Session* session = registry_.FindSession(client.session);
  MaybeRefusal refusal;
  if (message.verb == Verb::kHello) {
    refusal = client.session == 0 ? Hello(client, message) : errors::Protocol("a second HELLO");
  } else if (session == nullptr) {
    refusal = errors::Protocol(fmt::format("{} before HELLO", wire::Name(message.verb)));
  } else if (is_draining_ && message.verb == Verb::kBind) {
    refusal = errors::Draining();
  } else {
    switch (message.verb) {
      case Verb::kBind:
        refusal = Bind(client, *session, message);
        break;
      case Verb::kUnbind:
        refusal = Unbind(client, *session, message);
        break;
      case Verb::kResolve:
        refusal = Resolve(client, *session, message);
        break;
      case Verb::kInvite:
        refusal = Invite(client, *session, message);
        break;
      case Verb::kReject:
        if (Waiting waiting; TakeWaiting(*session, message.stream, waiting)) {
          Refuse(std::move(waiting), errors::NobodyHome());
        }
        return;
      case Verb::kPing:
        client.control->Send(Answer(Verb::kPong, message.id));
        return;
      case Verb::kPong:
        return;
      case Verb::kStats: {
        Message report = Answer(Verb::kReport, message.id);
        report.endpoint = message.endpoint;
        report.text = Page(policy_.IsAdmin(session->caller) ? nullptr : &session->caller,
                           report.endpoint, kPageBytesMax);
        client.control->Send(report);
        return;
      }
      case Verb::kBye:
        Bye(client, session->id);
        return;
      default:
        refusal =
            errors::Protocol(fmt::format("{} is for the relay to say", wire::Name(message.verb)));
    }
  }
  if (!refusal) {
    return;
  }
  Say(*refusal, session != nullptr ? session->caller.owner : wire::IpText(client.peer));
  client.control->Send(
      wire::ErrorMessage(message.id, refusal->code, refusal->words, refusal->rule));
  if (client.session == 0 || refusal->code == wire::Code::kProtocol) {
    client.control->Finish(refusal->words);
  }
}

void Relay::Lost(Client& client, const std::string& why) {
  if (Session* session = registry_.FindSession(client.session); session != nullptr) {
    registry_.Detach(*session, now_ms_ / 1000);
    doors_[session->id].client = nullptr;
    spdlog::debug("control connection lost session={:x} owner=\"{}\": {}", session->id,
                  Printable(session->caller.owner), Printable(why));
  }
  const auto at = clients_.find(&client);
  if (at != clients_.end()) {
    dead_.push_back(std::shared_ptr<Client>(std::move(at->second)));
    clients_.erase(at);
  }
}

Descriptor Relay::ListenAt(uint16_t port) const {
  wire::Address address = listen_;
  address.port = port;
  return ListenOn(address);
}

MaybeRefusal Relay::OpenPort(const Session& session, const Message& bind, Descriptor& socket,
                             uint16_t& port) {
  if (static_cast<wire::Scope>(bind.scope) == wire::Scope::kJob) {
    port = registry_.FreeJobPort();
    return port != 0
               ? std::nullopt
               : MaybeRefusal(errors::NoPortFree(limits_.job_port_first, limits_.job_port_last));
  }
  std::vector<Ports> ranges;
  if (auto refusal = policy_.PublicPorts(session.caller, bind.port, bind.port_max, ranges)) {
    return refusal;
  }
  for (const Ports& range : ranges) {
    const int count = range.last - range.first + 1;
    const int start = static_cast<int>(RandomId() % static_cast<uint64_t>(count));
    for (int i = 0; i < count; ++i) {
      const auto tried = static_cast<uint16_t>(range.first + (start + i) % count);
      if (tried == port_ || registry_.FindPort(tried) != nullptr) {
        continue;
      }
      socket = ListenAt(tried);
      if (socket.is_open()) {
        port = tried;
        return std::nullopt;
      }
      if (errno == EMFILE || errno == ENFILE) {
        return errors::Exhausted();
      }
    }
  }
  if (bind.port != 0 && (bind.port_max == 0 || bind.port_max == bind.port)) {
    return errors::PortTaken(static_cast<int>(bind.port));
  }
  return errors::NoPortFree(ranges.front().first, ranges.back().last);
}

MaybeRefusal Relay::TakeBack(Client& client, Session& session, const Message& bind) {
  Endpoint* endpoint = nullptr;
  if (auto refusal = registry_.Reclaim(bind.endpoint, Sha256Of(bind.secret), session, endpoint)) {
    return refusal;
  }
  if (endpoint->reserved.scope == wire::Scope::kPublic && !doors_open_.contains(bind.endpoint)) {
    // Its port could not be opened when the relay started.
    Descriptor socket = ListenAt(endpoint->reserved.port);
    if (!socket.is_open() && (errno == EMFILE || errno == ENFILE)) {
      return errors::Exhausted();
    }
    if (!socket.is_open()) {
      const Refusal refusal = errors::PortLost(endpoint->reserved.port, std::strerror(errno));
      RemoveEndpoint(bind.endpoint);
      return refusal;
    }
    Listen(*endpoint, std::move(socket));
  }
  Message bound = Answer(Verb::kBound, bind.id);
  bound.endpoint = bind.endpoint;
  bound.secret = bind.secret;
  bound.scope = static_cast<uint64_t>(endpoint->reserved.scope);
  bound.address = AddressText(endpoint->reserved);
  client.control->Send(bound);
  if (const auto at = waiting_.find(bind.endpoint); at != waiting_.end()) {
    for (const Waiting& waiting : at->second) {
      Announce(*endpoint, waiting);
    }
  }
  return std::nullopt;
}

MaybeRefusal Relay::Bind(Client& client, Session& session, const Message& bind) {
  if (bind.endpoint != 0) {
    return TakeBack(client, session, bind);
  }
  if (!bind.secret.empty()) {  // it may have been bound before, and the answer lost
    Message again = bind;
    again.endpoint = registry_.FindSecret(Sha256Of(bind.secret), session.caller);
    if (again.endpoint != 0) {
      return TakeBack(client, session, again);
    }
  }
  if ((bind.scope != 1 && bind.scope != 2) || bind.port > 65535 || bind.port_max > 65535 ||
      (bind.port_max != 0 && bind.port_max < bind.port)) {
    return errors::Protocol("BIND with a scope or port that there is not");
  }
  auto allow = ParseNetworks(bind.allow);
  if (!allow) {
    return errors::Protocol("BIND with an allow that is no list of networks");
  }
  if (auto refusal = registry_.MayBind(session)) {
    return refusal;
  }
  if (config_.policy().encrypt() && bind.encrypt == 0) {
    return errors::NotEncrypted();
  }
  Descriptor socket;
  Reservation reserved;
  if (auto refusal = OpenPort(session, bind, socket, reserved.port)) {
    return refusal;
  }
  const std::string secret = bind.secret.empty() ? RandomBytes(wire::kSecretBytes) : bind.secret;
  reserved.id = RandomId();
  reserved.scope = static_cast<wire::Scope>(bind.scope);
  reserved.ip = PublicIp(client);
  reserved.secret_hash = Sha256Of(secret);
  reserved.caller = session.caller;
  reserved.inside = bind.inside;
  reserved.label = bind.label;
  reserved.allow = bind.allow;
  reserved.backlog = static_cast<uint32_t>(std::min<uint64_t>(bind.backlog, 1u << 20));
  reserved.is_encrypted = bind.encrypt != 0;
  if (const absl::Status written = journal_.Add(reserved); !written.ok()) {
    spdlog::error("{}", StatusText(written));
    return Refusal{wire::Code::kInternal, "the reservation could not be written", ""};
  }
  Endpoint& endpoint = registry_.AddEndpoint(reserved, *std::move(allow), &session, now_ms_ / 1000);
  if (socket.is_open()) {
    Listen(endpoint, std::move(socket));
  }
  spdlog::info("endpoint opened endpoint={} scope={} owner=\"{}\" job={} inside={}",
               AddressText(reserved), bind.scope == 2 ? "public" : "job",
               Printable(reserved.caller.owner), Printable(reserved.caller.job),
               Printable(reserved.inside));
  Message bound = Answer(Verb::kBound, bind.id);
  bound.endpoint = reserved.id;
  bound.secret = secret;
  bound.scope = bind.scope;
  bound.address = AddressText(reserved);
  TellOthers(client, session, bind, session.bound_others_due_s);
  client.control->Send(bound);
  return std::nullopt;
}

void Relay::Listen(Endpoint& endpoint, Descriptor socket) {
  const uint64_t id = endpoint.reserved.id;
  TuneSocket(socket.get(), limits_.user_timeout_s);  // accepted ones inherit it
  doors_open_[id] = std::make_unique<Listener>(
      poller_, std::move(socket),
      Listener::Events{.accepted =
                           [this, id](Descriptor peer, const wire::Address& from) {
                             PeerCame(id, std::move(peer), from);
                           },
                       .exhausted = [this] { Say(errors::Exhausted(), "everyone"); }});
}

void Relay::RemoveEndpoint(uint64_t id) {
  Endpoint* endpoint = registry_.FindEndpoint(id);
  if (endpoint == nullptr) {
    return;
  }
  spdlog::info("endpoint closed endpoint={} streams={}", AddressText(endpoint->reserved),
               endpoint->streams_total);
  if (const auto open = doors_open_.find(id); open != doors_open_.end()) {
    open->second->Close();
    dead_.push_back(std::shared_ptr<Listener>(std::move(open->second)));
    doors_open_.erase(open);
  }
  registry_.RemoveEndpoint(id);
  if (const absl::Status written = journal_.Remove(id); !written.ok()) {
    spdlog::error("{}", StatusText(written));
  }
  ExpireWaiting(now_ms_);
}

void Relay::CloseSession(uint64_t id) {
  Session* session = registry_.FindSession(id);
  if (session == nullptr) {
    return;
  }
  const std::set<uint64_t> endpoints = session->endpoints;
  for (const uint64_t endpoint : endpoints) {
    RemoveEndpoint(endpoint);
  }
  if (Client* client = doors_[id].client; client != nullptr) {
    client->session = 0;
    client->control->Finish("the session has ended");
  }
  doors_.erase(id);
  registry_.CloseSession(id);
}

void Relay::Bye(Client& client, uint64_t session) {
  client.session = 0;
  doors_[session].client = nullptr;
  CloseSession(session);
  client.control->Finish("bye");
}

MaybeRefusal Relay::Unbind(Client& client, Session& session, const Message& message) {
  if (session.endpoints.count(message.endpoint) == 0) {
    return errors::NotOwner();
  }
  RemoveEndpoint(message.endpoint);
  client.control->Send(Answer(Verb::kDone, message.id));
  return std::nullopt;
}

MaybeRefusal Relay::Resolve(Client& client, Session& session, const Message& message) {
  const auto address = wire::ParseAddress(message.address);
  const Endpoint* endpoint =
      address && (IsOwn(*address) || wire::IpText(*address) == PublicIp(client))
          ? registry_.FindPort(address->port)
          : registry_.FindInside(message.address, message.site, session.caller);
  if (endpoint == nullptr) {
    return address && policy_.IsInside(*address, client.peer, message.site)
               ? errors::NobodyListens(message.address)
               : errors::NoSuchEndpoint(message.address);
  }
  if (auto refusal = registry_.MayReach(*endpoint, session.caller)) {
    return refusal;
  }
  TellOthers(client, session, message, session.resolved_others_due_s);
  Message resolved = Resolved(session, *endpoint);
  resolved.id = message.id;
  client.control->Send(resolved);
  return std::nullopt;
}

// Who meets one of a job soon meets the others: what he would hear of them comes before the answer.
void Relay::TellOthers(Client& client, const Session& session, const Message& asked,
                       int64_t& due_s) {
  if (asked.others == 0 || second_ < due_s) {
    return;
  }
  due_s = second_ + 1;
  const size_t most = std::min<uint64_t>(asked.others, kOthersMost);
  for (const auto& [place, other] : registry_.AllInside(asked.site, session.caller, most)) {
    Message resolved = Resolved(session, *other);
    resolved.place = place;
    client.control->Send(resolved);
  }
}

Message Relay::Resolved(const Session& session, const Endpoint& endpoint) {
  const Reservation& reserved = endpoint.reserved;
  Message resolved = Answer(Verb::kResolved, 0);
  resolved.endpoint = reserved.id;
  resolved.scope = static_cast<uint64_t>(reserved.scope);
  resolved.address = AddressText(reserved);
  resolved.inside = reserved.inside;
  resolved.site = config_.site();
  resolved.encrypt = reserved.is_encrypted ? 1 : 0;
  if (session.caller.SharesWith(reserved.caller)) {
    resolved.owner = reserved.caller.owner;
    resolved.job = reserved.caller.job;
    resolved.label = reserved.label;
  }
  return resolved;
}

MaybeRefusal Relay::Invite(Client& client, const Session& session, const Message& message) {
  Endpoint* endpoint = registry_.FindEndpoint(message.endpoint);
  if (endpoint == nullptr) {
    return errors::NoSuchEndpoint(fmt::format("{:x}", message.endpoint));
  }
  if (!session.caller.SharesWith(endpoint->reserved.caller)) {
    return errors::OtherJob(AddressText(endpoint->reserved));
  }
  const auto doors = doors_.find(endpoint->session);
  if (doors == doors_.end() || doors->second.client == nullptr) {
    return errors::NobodyHome();
  }
  Message invited = Answer(Verb::kInvited, 0);
  invited.endpoint = message.endpoint;
  invited.address = message.address;
  invited.cookie = message.cookie;
  doors->second.client->control->Send(invited);
  client.control->Send(Answer(Verb::kDone, message.id));
  return std::nullopt;
}

}  // namespace sekisho::nxproxy
