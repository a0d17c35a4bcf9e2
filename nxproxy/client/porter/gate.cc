// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/gate.h"

#include <algorithm>
#include <utility>

#include "nxproxy/client/rules.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr uint64_t kSparesMax = 8;
constexpr size_t kDialledMax = 1024;

}  // namespace

Gate::Gate(Loop& loop, const wire::HostPort& server, const std::string& program, int64_t beat_most_ms,
           Handlers handlers)
    : loop_(loop),
      handlers_(std::move(handlers)),
      relays_(loop, server, program, beat_most_ms, SessionHandlers()) {}

Session::Handlers Gate::SessionHandlers() {
  Session::Handlers out;
  out.on_up = [this](bool is_resumed) { handlers_.on_up(*this, is_resumed); };
  out.on_down = [this](const std::string& why) {
    handlers_.on_down(
        *this, {wire::Code::kTargetUnreachable, why, "check NXPROXY_SERVER and that it is up", ""});
  };
  out.on_refused = [this](const Refusal& refusal) { handlers_.on_down(*this, refusal); };
  out.on_message = [this](const wire::Message& message) { OnMessage(message); };
  return out;
}

void Gate::Open(const BindPlan& plan, bool is_resumed) {
  if (endpoints_ == nullptr) {
    Session& session = relays_.session();
    direct_ = plan.direct;
    endpoints_ = std::make_unique<Endpoints>(session, plan, handlers_.on_line,
                                             [this] { AdjustSpares(); });
    ways_ = std::make_unique<Ways>(loop_, session, relays_.dial_address(), plan.site);
    arrivals_ = std::make_unique<Arrivals>(loop_, session,
                                           [this](const wire::Opening& opening, int fd) {
                                             handlers_.on_joined(*this, opening, fd);
                                           });
  }
  if (!is_resumed) {
    arrivals_->Renew();
    ways_->Forget();
  }
  endpoints_->OnUp(is_resumed);
}

void Gate::OnMessage(const wire::Message& message) {
  if (message.verb == wire::Verb::kAnnounce && arrivals_ != nullptr) {
    arrivals_->Take(message);
  } else if (message.verb == wire::Verb::kInvited && arrivals_ != nullptr) {
    Follow(message);
  } else if (message.verb == wire::Verb::kFailed && message.counter != 0) {
    const auto dialled = dialled_.find(message.counter);
    handlers_.on_failed(dialled != dialled_.end() ? dialled->second : "",
                        ToText(RefusalOf(message)));
  } else if (message.verb == wire::Verb::kResolved && ways_ != nullptr) {
    ways_->Learn(message);
  } else if (message.verb == wire::Verb::kDrain) {
    handlers_.on_trouble("the relay " + server_text() + " is stopping");
  }
}

// The relay hands invitations on, and may lie: it leads us nowhere but outside.
void Gate::Follow(const wire::Message& invited) {
  const Endpoint* endpoint = endpoints_->FindById(invited.endpoint);
  const auto address = wire::ParseAddress(invited.address);
  if (endpoint != nullptr && !endpoint->is_encrypted && address &&
      MayBeDialled(*address, direct_.c_str()) && !Interfaces::Read().IsAttached(*address)) {
    arrivals_->Follow(invited);
  }
}

std::string Gate::Mint(const std::string& target, const wire::Address& from,
                       const wire::Address& destination) {
  std::string preface = relays_.session().MintConnect(target, from, false);
  if (!preface.empty()) {
    dialled_[relays_.session().last_counter()] = wire::ToText(destination);
    if (dialled_.size() > kDialledMax) {
      dialled_.erase(dialled_.begin());
    }
  }
  return preface;
}

void Gate::AdjustSpares() {
  const uint64_t wanted =
      endpoints_->empty() ? 0 : std::min(relays_.session().welcome().spares, kSparesMax);
  arrivals_->Want(wanted, endpoints_->wants_v6());
}

}  // namespace sekisho::nxproxy::client
