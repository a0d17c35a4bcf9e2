// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/porter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "nxproxy/client/porter/sockets.h"
#include "nxproxy/client/rules.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kSweepMs = 2000;
constexpr int64_t kSayAgainMs = 10'000;
constexpr uint64_t kSparesMax = 8;
constexpr size_t kNamesMax = 65'536;
constexpr size_t kDialledMax = 1024;

}  // namespace

Porter::Porter(Loop& loop, const wire::HostPort& server, BindPlan plan, Handlers handlers)
    : loop_(loop),
      plan_(std::move(plan)),
      handlers_(std::move(handlers)),
      relays_(loop, server, plan_.label, SessionHandlers()),
      knocks_(loop, [this](const wire::Address&) { loop_.After(0, [this] { SweepNow(); }); }),
      server_(loop, [this](const std::shared_ptr<Asker>& asker) { OnRequest(asker); }) {}

Porter::~Porter() { loop_.Cancel(sweep_); }

void Porter::Start() { relays_.Start(); }

void Porter::Leave() { relays_.Leave(); }

std::string Porter::Place() const { return server_.Place() + relays_.AddressesText(); }

Session::Handlers Porter::SessionHandlers() {
  Session::Handlers out;
  out.on_up = [this](bool is_resumed) { OnUp(is_resumed); };
  out.on_down = [this](const std::string& why) {
    const std::string line = "the relay " + relays_.server_text() + " is away: " + why;
    if (is_ready_) {
      SayOnce(line);
    } else {
      handlers_.on_refused(
          {wire::Code::kTargetUnreachable, line, "check NXPROXY_SERVER and that it is up", ""});
    }
  };
  out.on_refused = [this](const Refusal& refusal) { handlers_.on_refused(refusal); };
  out.on_message = [this](const wire::Message& message) { OnMessage(message); };
  return out;
}

void Porter::OnUp(bool is_resumed) {
  if (endpoints_ == nullptr) {
    Session& session = relays_.session();
    endpoints_ =
        std::make_unique<Endpoints>(session, plan_, handlers_.on_line, [this] { AdjustSpares(); });
    ways_ = std::make_unique<Ways>(loop_, session, relays_.dial_address(), plan_.site);
    arrivals_ = std::make_unique<Arrivals>(
        loop_, session, [this](const wire::Opening& opening, int fd) { OnJoined(opening, fd); });
  }
  if (!is_resumed) {
    arrivals_->Renew();
    ways_->Forget();
  }
  endpoints_->OnUp(is_resumed);
  if (is_ready_) {
    SayOnce("the relay " + relays_.server_text() + " is back");
    return;
  }
  is_ready_ = true;
  handlers_.on_ready();
}

void Porter::OnMessage(const wire::Message& message) {
  if (message.verb == wire::Verb::kAnnounce && arrivals_ != nullptr) {
    arrivals_->Take(message);
  } else if (message.verb == wire::Verb::kFailed && message.counter != 0) {
    const auto dialled = dialled_.find(message.counter);
    const std::string to =
        dialled != dialled_.end() ? "connection to " + dialled->second : "a connection";
    SayOnce(to + " failed: " + ToText(RefusalOf(message)));
  } else if (message.verb == wire::Verb::kDrain) {
    SayOnce("the relay " + relays_.server_text() + " is stopping");
  }
}

// A line that repeats is said once in ten seconds.
void Porter::SayOnce(const std::string& line) {
  const int64_t now_ms = loop_.now_ms();
  std::erase_if(said_, [&](const auto& one) { return one.second + kSayAgainMs < now_ms; });
  if (said_.emplace(line, now_ms).second) {
    handlers_.on_line(line);
  }
}

void Porter::OnRequest(const std::shared_ptr<Asker>& asker) {
  const LocalRequest& request = asker->request();
  if (!is_ready_) {
    asker->Pass();
    return;
  }
  switch (request.verb) {
    case LocalVerb::kListen:
    case LocalVerb::kReserve:
      endpoints_->Add(asker);
      SweepLater();
      return;
    case LocalVerb::kConnect:
      Connect(asker);
      return;
    case LocalVerb::kDialled:
      Remember({request.local, request.remote},
               {request.peer, {}, (request.flags & kIsV6) != 0, 0});
      asker->Know({}, {}, false);
      return;
    case LocalVerb::kClaim:
      Claim(*asker);
      return;
    case LocalVerb::kName: {
      const auto found = names_.find({request.local, request.remote});
      if (found != names_.end()) {
        asker->Know(found->second.peer, found->second.self, found->second.is_v6);
        return;
      }
      break;
    }
    case LocalVerb::kAddress:
      if (const Endpoint* endpoint = endpoints_->FindByInode(request.inode);
          endpoint != nullptr && endpoint->id != 0) {
        asker->Know({}, endpoint->address, endpoint->listeners.front().is_v6);
        return;
      }
      break;
  }
  asker->Pass();
}

void Porter::Connect(const std::shared_ptr<Asker>& asker) {
  const wire::Address destination = asker->request().remote;
  ways_->Find(destination, [this, asker, destination](const Way& way) {
    LocalReply reply;
    if (way.kind == Way::Kind::kRefused) {
      SayOnce("connection to " + wire::ToText(destination) + " refused: " + ToText(way.refusal));
      asker->Refuse(wire::Info(way.refusal.code).error, ToText(way.refusal));
      return;
    }
    if (way.kind == Way::Kind::kInside) {
      reply.answer = LocalAnswer::kDial;
      reply.address = way.inside;
    } else if (way.kind == Way::Kind::kRelay) {
      wire::Address from;
      if (way.is_ours) {
        from = asker->request().local;
        if (IsWildcard(from)) {
          const uint16_t port = from.port;
          from = Interfaces::Read().Main();
          from.port = port;
        }
      }
      const std::string preface = relays_.session().MintConnect(way.target, from, false);
      if (!preface.empty() && preface.size() <= sizeof reply.preface) {
        reply.answer = LocalAnswer::kDial;
        reply.address = relays_.dial_address();
        reply.preface_bytes = static_cast<uint32_t>(preface.size());
        std::memcpy(reply.preface, preface.data(), preface.size());
        dialled_[relays_.session().last_counter()] = wire::ToText(destination);
        if (dialled_.size() > kDialledMax) {
          dialled_.erase(dialled_.begin());
        }
      }
    }
    asker->Answer(reply);
  });
}

void Porter::Remember(const Pair& ends, const Name& name) {
  if (names_.size() < kNamesMax) {
    names_[ends] = name;
    names_[ends].since_ms = loop_.now_ms();
    SweepLater();
  }
}

void Porter::Claim(Asker& asker) {
  const Visitor visitor = knocks_.Claim(asker.request().local, asker.request().remote);
  LocalReply reply;
  if (visitor.stream < 0) {
    asker.Pass();
    return;
  }
  reply.answer = LocalAnswer::kStream;
  reply.peer = visitor.peer;
  reply.self = visitor.self;
  Remember({LocalOf(visitor.stream), RemoteOf(visitor.stream)},
           {visitor.peer, visitor.self, visitor.is_v6, 0});
  asker.Answer(reply, visitor.stream);
  close(visitor.stream);
}

void Porter::OnJoined(const wire::Opening& opening, int fd) {
  const Endpoint* endpoint = endpoints_->FindById(opening.endpoint);
  if (endpoint == nullptr) {
    Reset(fd);
    return;
  }
  const Listener& listener = endpoint->listeners.front();
  Visitor visitor;
  visitor.stream = fd;
  visitor.peer = opening.peer;
  visitor.is_v6 = listener.is_v6;
  visitor.self = listener.local;
  if (IsWildcard(listener.local)) {
    visitor.self = Interfaces::Read().Main();
    visitor.self.port = listener.local.port;
  }
  knocks_.Knock(listener.local, listener.is_v6_only, visitor);
}

void Porter::AdjustSpares() {
  const uint64_t wanted =
      endpoints_->empty() ? 0 : std::min(relays_.session().welcome().spares, kSparesMax);
  arrivals_->Want(wanted, endpoints_->wants_v6());
}

void Porter::SweepLater() {
  if (sweep_ == 0) {
    sweep_ = loop_.After(kSweepMs, [this] {
      sweep_ = 0;
      SweepNow();
    });
  }
}

void Porter::SweepNow() {
  if (endpoints_ == nullptr) {
    return;
  }
  const TcpTable table = ReadTcpTable();
  const int64_t now_ms = loop_.now_ms();
  std::erase_if(names_, [&](const auto& one) {
    return one.second.since_ms + kSweepMs < now_ms && !table.connections.contains(one.first);
  });
  endpoints_->Sweep(table);
  if (!endpoints_->empty() || !names_.empty()) {
    SweepLater();
  }
}

}  // namespace sekisho::nxproxy::client
