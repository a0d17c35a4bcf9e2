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
    BindPlan plan = plan_;
    plan.is_encrypted = plan.is_encrypted || session.welcome().encrypt != 0;
    if (plan.is_encrypted && !StartEncryption()) {
      return;
    }
    endpoints_ = std::make_unique<Endpoints>(session, std::move(plan), handlers_.on_line,
                                             [this] { AdjustSpares(); });
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

bool Porter::StartEncryption() {
  std::string error;
  auto end = OwnEnd::Load(error);
  if (end == nullptr) {
    handlers_.on_refused({wire::Code::kUnauthenticated, "no encryption: " + error, "", ""});
    return false;
  }
  encryption_ = std::make_unique<Encryption>(loop_, std::move(end),
                                             [this](const std::string& line) { SayOnce(line); });
  return true;
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
      Remember({request.local, request.remote}, DialledName(request));
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
    if (encryption_ != nullptr && way.kind == Way::Kind::kRelay && !way.is_encrypted) {
      SayOnce("connection to " + wire::ToText(destination) + " refused: " + kNotEncrypted);
      asker->Refuse(EACCES, kNotEncrypted);
      return;
    }
    if (way.is_encrypted && encryption_ == nullptr && !StartEncryption()) {
      asker->Refuse(EACCES, "no encryption");
      return;
    }
    // Where we are to go in plain text, of all places, is not for the relay to say.
    if (encryption_ != nullptr && way.kind != Way::Kind::kDirect) {
      DialEncrypted(way, asker->request(), reply);
    } else if (way.kind == Way::Kind::kInside) {
      reply.answer = LocalAnswer::kDial;
      reply.address = way.inside;
    } else if (way.kind == Way::Kind::kRelay) {
      DialPlain(way, asker->request(), reply);
    }
    asker->Answer(reply);
  });
}

// As whom the far end shall see the program: as it publishes itself.
wire::Address Porter::SourceOf(const Way& way, const LocalRequest& request) {
  if (!way.is_ours) {
    return {};
  }
  wire::Address from = request.local;
  if (IsWildcard(from)) {
    from = Interfaces::Read().Main();
    from.port = request.local.port;
  }
  return from;
}

std::string Porter::MintTo(const std::string& target, const wire::Address& from,
                           const wire::Address& destination) {
  const std::string preface = relays_.session().MintConnect(target, from, false);
  if (!preface.empty()) {
    dialled_[relays_.session().last_counter()] = wire::ToText(destination);
    if (dialled_.size() > kDialledMax) {
      dialled_.erase(dialled_.begin());
    }
  }
  return preface;
}

void Porter::DialPlain(const Way& way, const LocalRequest& request, LocalReply& reply) {
  const std::string preface = MintTo(way.target, SourceOf(way, request), request.remote);
  if (!preface.empty() && preface.size() <= sizeof reply.preface) {
    reply.answer = LocalAnswer::kDial;
    reply.address = relays_.dial_address();
    reply.preface_bytes = static_cast<uint32_t>(preface.size());
    std::memcpy(reply.preface, preface.data(), preface.size());
  }
}

void Porter::DialEncrypted(const Way& way, const LocalRequest& request, LocalReply& reply) {
  const auto dial = [this, target = way.target, from = SourceOf(way, request),
                     destination = request.remote] {
    const std::string preface = MintTo(target, from, destination);
    return preface.empty() ? -1 : DialWith(relays_.dial_address(), false, preface);
  };
  const std::string cookie = encryption_->Expect({wire::ToText(request.remote), dial});
  reply.answer = cookie.empty() ? LocalAnswer::kRefused : LocalAnswer::kDial;
  reply.error = EAGAIN;
  reply.address = encryption_->door();
  reply.preface_bytes = static_cast<uint32_t>(cookie.size());
  std::memcpy(reply.preface, cookie.data(), cookie.size());
}

// Through the door the program's own end is on loopback, which it shall not see.
Porter::Name Porter::DialledName(const LocalRequest& request) const {
  Name name = {request.peer, {}, (request.flags & kIsV6) != 0, 0};
  if (encryption_ != nullptr && request.remote == encryption_->door()) {
    name.self = Interfaces::Read().Main();
    name.self.port = request.local.port;
  }
  return name;
}

void Porter::Remember(const Pair& ends, const Name& name) {
  if (names_.size() < kNamesMax) {
    names_[ends] = name;
    names_[ends].since_ms = loop_.now_ms();
    SweepLater();
  }
}

void Porter::Claim(Asker& asker) {
  const LocalRequest& request = asker.request();
  Visitor visitor = knocks_.Claim(request.local, request.remote);
  if (visitor.stream == nullptr) {
    asker.Pass();
    return;
  }
  LocalReply reply;
  reply.answer = LocalAnswer::kStream;
  reply.peer = visitor.peer;
  reply.self = visitor.self;
  const Name name = {visitor.peer, visitor.self, visitor.is_v6, 0};
  if (visitor.is_encrypted) {
    Remember({request.local, request.remote}, name);
    asker.Answer(reply);
    encryption_->Join(std::move(visitor.knock), std::move(visitor.stream));
  } else {
    const int fd = visitor.stream->fd();
    Remember({LocalOf(fd), RemoteOf(fd)}, name);
    asker.Answer(reply, fd);
  }
}

void Porter::OnJoined(const wire::Opening& opening, int fd) {
  const Endpoint* endpoint = endpoints_->FindById(opening.endpoint);
  if (endpoint == nullptr) {
    Reset(fd);
  } else if (encryption_ == nullptr || !endpoint->is_encrypted) {
    Knock(opening.endpoint, opening.peer, std::make_unique<Channel>(fd), false);
  } else {
    encryption_->Greet(fd, Names(*endpoint, encryption_->end().job()),
                       [this, opening](std::unique_ptr<Channel> stream) {
                         Knock(opening.endpoint, opening.peer, std::move(stream), true);
                       });
  }
}

void Porter::Knock(uint64_t id, const wire::Address& peer, std::unique_ptr<Channel> stream,
                   bool is_encrypted) {
  const Endpoint* endpoint = endpoints_->FindById(id);
  if (endpoint == nullptr) {
    stream->ResetAtClose();
    return;
  }
  const Listener& listener = endpoint->listeners.front();
  Visitor visitor;
  visitor.stream = std::move(stream);
  visitor.is_encrypted = is_encrypted;
  visitor.peer = peer;
  visitor.is_v6 = listener.is_v6;
  visitor.self = listener.local;
  if (IsWildcard(listener.local)) {
    visitor.self = Interfaces::Read().Main();
    visitor.self.port = listener.local.port;
  }
  knocks_.Knock(listener.local, listener.is_v6_only, std::move(visitor));
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
