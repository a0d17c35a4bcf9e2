// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/porter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include <unistd.h>

#include "nxproxy/client/porter/proc_net.h"
#include "nxproxy/client/porter/sock_diag.h"
#include "nxproxy/client/porter/sockets.h"
#include "nxproxy/client/rules.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kSweepMs = 2000;
// Who ends for a relay that is away notices within 12 s that it is, whose packets nobody answers.
constexpr int64_t kBeatUnreachedMs = 3000;
constexpr int64_t kTriedMs = 8000;  // before the command starts
constexpr int64_t kSayAgainMs = 10'000;
constexpr int64_t kOthersBackMs = 8000;
constexpr size_t kNamesMax = 65'536;

}  // namespace

Porter::Porter(Loop& loop, const std::vector<wire::HostPort>& servers, BindPlan plan,
               Handlers handlers)
    : loop_(loop),
      plan_(std::move(plan)),
      handlers_(std::move(handlers)),
      records_(loop, plan_.links),
      knocks_(loop, [this](const wire::Address&) { loop_.After(0, [this] { SweepNow(); }); }),
      server_(loop, [this](const std::shared_ptr<Asker>& asker) { OnRequest(asker); }) {
  const int64_t beat_most_ms = plan_.ends_unreached ? kBeatUnreachedMs : std::numeric_limits<int64_t>::max();
  for (const wire::HostPort& server : servers) {
    gates_.push_back(std::make_unique<Gate>(loop, server, plan_.label, beat_most_ms, GateHandlers()));
  }
  const wire::Address here = Interfaces::Read().Main();
  if (here.is_v4() && plan_.is_inviting.value_or(!IsPrivate(here))) {
    reversal_ = std::make_unique<Reversal>(loop, here);
  }
  if (plan_.ends_unreached) {
    unreached_ = std::make_unique<Unreached>(loop, plan_.label, handlers_.on_unreached);
  }
}

Porter::~Porter() { loop_.Cancel(sweep_); }

void Porter::Start() {
  tried_until_ms_ = loop_.now_ms() + kTriedMs;
  for (const auto& gate : gates_) {
    gate->Start();
  }
}

void Porter::Leave() {
  for (const auto& gate : gates_) {
    gate->Leave();
  }
}

std::string Porter::Place() const {
  std::string text = server_.Place();
  for (const auto& gate : gates_) {
    text.append(gate == gates_.front() ? "" : ",").append(gate->AddressesText());
  }
  if (reversal_ != nullptr) {
    text += ';';
    text += std::to_string(reversal_->port());
  }
  return text;
}

bool Porter::has_endpoints() const {
  return std::any_of(gates_.begin(), gates_.end(), [](const auto& gate) {
    return gate->has_been_up() && !gate->endpoints().empty();
  });
}

size_t Porter::refused_binds() const {
  size_t count = 0;
  for (const auto& gate : gates_) {
    count += gate->has_been_up() ? gate->endpoints().refused_binds() : 0;
  }
  return count;
}

Gate::Handlers Porter::GateHandlers() {
  Gate::Handlers out;
  out.on_up = [this](Gate& gate, bool is_resumed) { OnUp(gate, is_resumed); };
  out.on_down = [this](Gate& gate, const Refusal& refusal) { OnDown(gate, refusal); };
  out.on_line = handlers_.on_line;
  out.on_trouble = [this](const std::string& line) { SayOnce(line); };
  out.on_failed = [this](const std::string& destination, const std::string& why) {
    SayOnce((destination.empty() ? "a connection" : "connection to " + destination) + " failed: " + why);
    if (!destination.empty()) {  // a connection that nobody waits for is a spare, to a relay that may be away
      OnFailed(destination, why);
    }
  };
  out.on_joined = [this](Gate& gate, const wire::Opening& opening, int fd) {
    OnJoined(gate, opening, fd);
  };
  return out;
}

void Porter::OnUp(Gate& gate, bool is_resumed) {
  BindPlan plan = plan_;
  plan.is_encrypted = plan.is_encrypted || gate.demands_encryption();
  if (plan.is_encrypted && encryption_ == nullptr && !StartEncryption()) {
    return;
  }
  if (unreached_ != nullptr) {
    unreached_->OnBack();
    others_back_ms_ = gate.has_been_up() ? loop_.now_ms() + kOthersBackMs : 0;
  }
  const bool is_new = !gate.has_been_up();
  const auto other =
      std::find_if(gates_.begin(), gates_.end(), [](const auto& one) { return one->has_been_up(); });
  const Endpoints* known = other != gates_.end() ? &(*other)->endpoints() : nullptr;
  gate.Open(plan, is_resumed);
  if (is_new && known != nullptr) {
    gate.endpoints().Adopt(*known);
  }
  for (const auto& again : std::exchange(waiting_, {})) {
    again();
  }
  if (is_ready_) {
    SayOnce("the relay " + gate.server_text() + (is_new ? " is up" : " is back"));
    return;
  }
  is_ready_ = true;
  handlers_.on_ready();
}

void Porter::OnDown(Gate& gate, const Refusal& refusal) {
  failed_.insert(&gate);
  // One rank whose packets were lost for a moment would end all of its job.
  const bool is_tried_again =
      unreached_ != nullptr && refusal.code == wire::Code::kTargetUnreachable && loop_.now_ms() < tried_until_ms_;
  if (is_ready_) {
    SayOnce(refusal.words);
  } else if (failed_.size() < gates_.size()) {
    SayOnce(ToText(refusal));
  } else if (is_tried_again) {
    SayOnce(refusal.words + "; trying again");
  } else {
    handlers_.on_refused(refusal);
  }
  if (is_ready_ && unreached_ != nullptr) {
    unreached_->OnAway(refusal.words);
  }
}

void Porter::OnFailed(const std::string& destination, const std::string& why) {
  if (unreached_ != nullptr) {
    unreached_->OnFailed(destination, why);
  }
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
      Publish(asker);
      return;
    case LocalVerb::kConnect:
      if ((request.flags & kIsTold) != 0) {
        records_.Connects(request.remote, TakenWay::kDirect);
        break;
      }
      Connect(asker, next_gate_++, 0);
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
      for (const auto& gate : gates_) {
        const Endpoint* endpoint =
            gate->has_been_up() ? gate->endpoints().FindByInode(request.inode) : nullptr;
        if (endpoint != nullptr && endpoint->id != 0) {
          asker->Know({}, endpoint->address, endpoint->listeners.front().is_v6);
          return;
        }
      }
      break;
  }
  asker->Pass();
}

void Porter::Publish(const std::shared_ptr<Asker>& asker) {
  std::vector<Gate*> open;
  for (const auto& gate : gates_) {
    if (gate->has_been_up()) {
      open.push_back(gate.get());
    }
  }
  const LocalRequest& request = asker->request();
  records_.Listens(Interfaces::Read().InsideText(
      request.local, (request.flags & kIsV6Only) == 0, (request.flags & kIsV6) != 0));
  asker->Expect(open.size());
  for (Gate* gate : open) {
    gate->endpoints().Add(asker);
  }
  SweepLater();
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

void Porter::OnJoined(Gate& gate, const wire::Opening& opening, int fd) {
  const Endpoint* endpoint = gate.endpoints().FindById(opening.endpoint);
  if (endpoint == nullptr) {
    Reset(fd);
  } else if (encryption_ == nullptr || !endpoint->is_encrypted) {
    Knock(gate, opening, std::make_unique<Channel>(fd), false);
  } else {
    encryption_->Greet(fd, Names(*endpoint, encryption_->end().job()),
                       [this, &gate, opening](std::unique_ptr<Channel> stream) {
                         Knock(gate, opening, std::move(stream), true);
                       });
  }
}

void Porter::Knock(Gate& gate, const wire::Opening& opening, std::unique_ptr<Channel> stream,
                   bool is_encrypted) {
  const Endpoint* endpoint = gate.endpoints().FindById(opening.endpoint);
  if (endpoint == nullptr) {
    stream->ResetAtClose();
    return;
  }
  const Listener& listener = endpoint->listeners.front();
  Visitor visitor;
  visitor.stream = std::move(stream);
  visitor.is_encrypted = is_encrypted;
  visitor.peer = opening.peer;
  visitor.is_v6 = listener.is_v6;
  visitor.self = listener.local;
  if (IsWildcard(listener.local)) {
    visitor.self = Interfaces::Read().Main();
    visitor.self.port = listener.local.port;
  }
  knocks_.Knock(listener.local, listener.is_v6_only, std::move(visitor));
}

void Porter::SweepLater() {
  if (sweep_ == 0) {
    sweep_ = loop_.After(kSweepMs, [this] {
      sweep_ = 0;
      ForgetNames();
      SweepNow();
    });
  }
}

void Porter::SweepNow() {
  if (!is_ready_) {
    return;
  }
  const std::set<uint64_t> listening = Listening();
  for (const auto& gate : gates_) {
    if (gate->has_been_up()) {
      gate->endpoints().Sweep(listening);
    }
  }
  if (has_endpoints() || !names_.empty()) {
    SweepLater();
  }
}

// Of connections that stand no more.
void Porter::ForgetNames() {
  if (names_.empty()) {
    return;
  }
  const TcpTable table = ReadTcpTable();
  const int64_t now_ms = loop_.now_ms();
  std::erase_if(names_, [&](const auto& one) {
    return one.second.since_ms + kSweepMs < now_ms && !table.connections.contains(one.first);
  });
}

}  // namespace sekisho::nxproxy::client
