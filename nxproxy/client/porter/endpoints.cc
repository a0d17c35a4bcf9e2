// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/endpoints.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sstream>

#include <openssl/rand.h>

#include "nxproxy/client/porter/ways.h"
#include "nxproxy/client/rules.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr size_t kEndpointsMax = 1024;
constexpr char kPublicIsPlain[] =
    "a public endpoint is for programs that do not encrypt: bind with scope job, or without "
    "encryption";

Listener ListenerOf(const Asker& asker) {
  const LocalRequest& request = asker.request();
  Listener out;
  out.inode = request.inode;
  out.local = request.local;
  out.is_v6 = (request.flags & kIsV6) != 0;
  out.is_v6_only = (request.flags & kIsV6Only) != 0;
  out.is_listening = request.verb == LocalVerb::kListen;
  out.pid = asker.pid();
  return out;
}

const char* Name(wire::Scope scope) { return scope == wire::Scope::kPublic ? "public" : "job"; }

bool IsAlive(pid_t pid) { return kill(pid, 0) == 0 || errno == EPERM; }

std::string InsideOf(const Endpoint& endpoint) {
  const Listener& first = endpoint.listeners.front();
  const bool takes_v4 = std::any_of(endpoint.listeners.begin(), endpoint.listeners.end(),
                                    [](const Listener& one) { return !one.is_v6_only; });
  const bool takes_v6 = std::any_of(endpoint.listeners.begin(), endpoint.listeners.end(),
                                    [](const Listener& one) { return one.is_v6; });
  return Interfaces::Read().InsideText(first.local, takes_v4, takes_v6);
}

// Empty: the relay makes one.
std::string NewSecret() {
  std::string secret(wire::kSecretBytes, '\0');
  const bool is_made = RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()),
                                  static_cast<int>(secret.size())) == 1;
  return is_made ? secret : "";
}

}  // namespace

std::vector<std::string> Names(const Endpoint& endpoint, const std::string& job) {
  std::vector<std::string> names = {wire::ToText(endpoint.address)};
  std::istringstream inside(InsideOf(endpoint));
  for (std::string one; std::getline(inside, one, ',');) {
    names.push_back(one);
  }
  if (!job.empty()) {
    names.push_back(job + ":" + std::to_string(endpoint.listeners.front().local.port));
  }
  return names;
}

Endpoints::Endpoints(Session& session, BindPlan plan, Say say, std::function<void()> on_change)
    : session_(session),
      plan_(std::move(plan)),
      say_(std::move(say)),
      on_change_(std::move(on_change)) {}

Endpoint& Endpoints::New() {
  Endpoint& endpoint = all_.emplace_back();
  endpoint.number = ++numbers_;
  return endpoint;
}

Endpoint* Endpoints::FindAlike(const Listener& listener) {
  for (Endpoint& endpoint : all_) {
    const Listener& first = endpoint.listeners.front();
    const bool is_same_place =
        first.local == listener.local || (first.local.port == listener.local.port &&
                                          IsWildcard(first.local) && IsWildcard(listener.local));
    if (is_same_place) {
      return &endpoint;
    }
  }
  return nullptr;
}

void Endpoints::Add(const std::shared_ptr<Asker>& asker) {
  const Listener listener = ListenerOf(*asker);
  const uint32_t flags = asker->request().flags;
  Endpoint* endpoint = FindAlike(listener);
  if (endpoint == nullptr) {
    if (all_.size() >= kEndpointsMax) {
      asker->Refuse(EMFILE, "more than 1024 endpoints");
      return;
    }
    endpoint = &New();
    const auto planned = plan_.ports.find(listener.local.port);
    endpoint->wanted_port = planned != plan_.ports.end() ? planned->second : 0;
    if (planned == plan_.ports.end() && added_++ == 0) {
      endpoint->wanted_port = plan_.first_port;
    }
    const wire::Scope named = (flags & kIsPublic) != 0 ? wire::Scope::kPublic : wire::Scope::kJob;
    endpoint->scope = (flags & kIsExplicit) != 0 ? named : plan_.scope;
    if ((flags & kIsExplicit) != 0) {
      endpoint->wanted_port = static_cast<uint16_t>(asker->request().port);
    }
    endpoint->backlog = asker->request().backlog;
    endpoint->is_encrypted = plan_.is_encrypted;
    if (endpoint->is_encrypted && endpoint->scope == wire::Scope::kPublic) {
      all_.pop_back();
      refused_binds_ += 1;
      say_(kPublicIsPlain);
      asker->Refuse(EACCES, kPublicIsPlain);
      return;
    }
  }
  const auto known = std::find_if(endpoint->listeners.begin(), endpoint->listeners.end(),
                                  [&](const Listener& one) { return one.inode == listener.inode; });
  if (known == endpoint->listeners.end()) {
    endpoint->listeners.push_back(listener);
  } else {
    known->is_listening = known->is_listening || listener.is_listening;
  }
  if (endpoint->id != 0) {
    asker->Know({}, endpoint->address, listener.is_v6);
    return;
  }
  if (!session_.is_up()) {
    if (listener.is_listening) {
      say_("the relay is away; port " + std::to_string(listener.local.port) +
           " will be reachable when it is back");
      asker->Pass();
    } else {
      asker->Refuse(ENETDOWN, "the relay " + session_.server_text() + " is away");
    }
    return;
  }
  endpoint->askers.push_back(asker);
  Bind(*endpoint);
}

void Endpoints::Adopt(const Endpoints& others) {
  for (const Endpoint& theirs : others.all_) {
    Endpoint& own = New();
    own.listeners = theirs.listeners;
    own.scope = theirs.scope;
    own.wanted_port = theirs.wanted_port;
    own.backlog = theirs.backlog;
    own.is_encrypted = theirs.is_encrypted || plan_.is_encrypted;
    Bind(own);
  }
}

Endpoint* Endpoints::Find(uint64_t number) {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [&](const Endpoint& one) { return one.number == number; });
  return found != all_.end() ? &*found : nullptr;
}

void Endpoints::Bind(Endpoint& endpoint) {
  if (endpoint.is_asked) {
    return;
  }
  endpoint.is_asked = true;
  if (endpoint.secret.empty()) {  // if the answer is lost, the next BIND asks for the same by it
    endpoint.secret = NewSecret();
  }
  wire::Message bind;
  bind.verb = wire::Verb::kBind;
  bind.scope = static_cast<uint64_t>(endpoint.scope);
  bind.inside = InsideOf(endpoint) + (plan_.site.empty() ? "" : "@" + plan_.site);
  bind.site = plan_.site;
  bind.others = kOthers;  // whom its program may connect to
  bind.label = plan_.label;
  bind.encrypt = endpoint.is_encrypted ? 1 : 0;
  bind.backlog = static_cast<uint64_t>(std::max(endpoint.backlog, 0));
  bind.endpoint = endpoint.id;
  bind.secret = endpoint.secret;
  bind.port = endpoint.id != 0 ? 0 : endpoint.wanted_port;
  session_.Ask(bind, [this, number = endpoint.number](const wire::Message& answer) {
    Endpoint* found = Find(number);
    if (found == nullptr) {  // swept meanwhile
      if (answer.verb == wire::Verb::kBound) {
        Unbind(answer.endpoint);
      }
      return;
    }
    found->is_asked = false;
    if (answer.verb == wire::Verb::kBound) {
      OnBound(*found, answer);
    } else {
      OnRefused(*found, answer);
    }
  });
}

void Endpoints::OnBound(Endpoint& endpoint, const wire::Message& answer) {
  const auto address = wire::ParseAddress(answer.address);
  endpoint.is_told = endpoint.is_told && address && *address == endpoint.address;
  endpoint.is_bound = true;
  endpoint.id = answer.endpoint;
  endpoint.secret = answer.secret;
  endpoint.address = address.value_or(wire::Address{});
  Tell(endpoint);
  on_change_();
  for (const auto& asker : std::exchange(endpoint.askers, {})) {
    asker->Know({}, endpoint.address, (asker->request().flags & kIsV6) != 0);
  }
}

void Endpoints::OnRefused(Endpoint& endpoint, const wire::Message& answer) {
  const bool is_away = !session_.is_up();
  if (!is_away && endpoint.id != 0 && !wire::EndsEndpoint(RefusalOf(answer).code)) {
    return;  // with the next sweep
  }
  if (!is_away && endpoint.id != 0) {
    // The relay knows it no more: a new one, at the same port if that is free.
    say_("the relay gave " + wire::ToText(endpoint.address) + " up: " + ToText(RefusalOf(answer)));
    endpoint.wanted_port = endpoint.address.port;
    endpoint.id = 0;
    endpoint.secret.clear();
    Bind(endpoint);
    return;
  }
  if (is_away) {
    for (const auto& asker : std::exchange(endpoint.askers, {})) {
      asker->Pass();
    }
    return;
  }
  const Refusal refusal = RefusalOf(answer);
  refused_binds_ += 1;
  say_("port " + std::to_string(endpoint.listeners.front().local.port) +
       " is not reachable: " + ToText(refusal));
  const auto askers = std::move(endpoint.askers);
  all_.remove_if([&](const Endpoint& one) { return &one == &endpoint; });
  for (const auto& asker : askers) {
    asker->Refuse(wire::Info(refusal.code).error, ToText(refusal));
  }
}

void Endpoints::Tell(Endpoint& endpoint) {
  if (!endpoint.is_told && !plan_.is_quiet) {
    endpoint.is_told = true;
    say_("port " + std::to_string(endpoint.listeners.front().local.port) + " is reachable at " +
         wire::ToText(endpoint.address) + " (" + Name(endpoint.scope) + ")");
  }
}

const Endpoint* Endpoints::FindByInode(uint64_t inode) const {
  for (const Endpoint& endpoint : all_) {
    for (const Listener& listener : endpoint.listeners) {
      if (listener.inode == inode) {
        return &endpoint;
      }
    }
  }
  return nullptr;
}

const Endpoint* Endpoints::FindById(uint64_t id) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const Endpoint& one) { return one.id == id; });
  return found != all_.end() && id != 0 ? &*found : nullptr;
}

bool Endpoints::IsOwn(const wire::Address& address) const {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const Endpoint& one) { return one.id != 0 && one.address == address; });
}

bool Endpoints::wants_v6() const { return !all_.empty() && all_.back().listeners.front().is_v6; }

void Endpoints::OnUp(bool is_resumed) {
  std::vector<uint64_t> open;
  for (Endpoint& endpoint : all_) {
    endpoint.is_bound = endpoint.is_bound && is_resumed;
    if (!endpoint.is_bound) {
      open.push_back(endpoint.number);
    }
  }
  for (const uint64_t number : open) {
    if (Endpoint* const endpoint = Find(number); endpoint != nullptr) {
      Bind(*endpoint);
    }
  }
}

void Endpoints::Unbind(uint64_t id) {
  wire::Message unbind;
  unbind.verb = wire::Verb::kUnbind;
  unbind.endpoint = id;
  session_.Ask(unbind, [](const wire::Message&) {});
}

void Endpoints::Sweep(const std::set<uint64_t>& listening) {
  for (Endpoint& endpoint : all_) {
    std::erase_if(endpoint.listeners, [&](Listener& listener) {
      const bool is_listening = listening.contains(listener.inode);
      listener.is_listening = listener.is_listening || is_listening;
      return listener.is_listening ? !is_listening : !IsAlive(listener.pid);
    });
    if (endpoint.listeners.empty() && endpoint.id != 0) {
      Unbind(endpoint.id);
    }
  }
  if (all_.remove_if([](const Endpoint& one) { return one.listeners.empty(); }) != 0) {
    on_change_();
  }
  for (Endpoint& endpoint : all_) {
    if (endpoint.id != 0 && !endpoint.is_bound && session_.is_up()) {
      Bind(endpoint);
    }
  }
}

}  // namespace sekisho::nxproxy::client
