// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/session.h"

#include <algorithm>
#include <utility>

#include <netdb.h>

#include "nxproxy/wire/ticket.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kBackoffMinMs = 1000;
constexpr int64_t kBackoffMaxMs = 30'000;
constexpr uint64_t kHeartbeatS = 20;
constexpr int64_t kRenewalMs = 5000;

// Blocks for as long as the resolver does; a number costs nothing.
bool LookUp(const wire::HostPort& server, wire::Address& out, std::string& error) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int result =
      getaddrinfo(server.host.c_str(), std::to_string(server.port).c_str(), &wanted, &found);
  if (result != 0) {
    error = gai_strerror(result);
    return false;
  }
  const auto address = wire::FromSocket(found->ai_addr);
  freeaddrinfo(found);
  out = address.value_or(wire::Address{});
  return address.has_value();
}

std::string TextOf(const wire::HostPort& server) {
  const bool is_v6 = server.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + server.host + "]" : server.host) + ":" + std::to_string(server.port);
}

}  // namespace

Refusal RefusalOf(const wire::Message& error) {
  Refusal out;
  out.code = error.code != 0 && error.code <= static_cast<uint64_t>(wire::Code::kInternal)
                 ? static_cast<wire::Code>(error.code)
                 : wire::Code::kInternal;
  out.words = error.words.empty() ? wire::Info(out.code).words : error.words;
  out.remedy = error.remedy.empty() ? wire::Info(out.code).remedy : error.remedy;
  out.rule = error.rule;
  return out;
}

std::string ToText(const Refusal& refusal) {
  std::string text = refusal.words + " (" + wire::Info(refusal.code).name;
  text += refusal.rule.empty() ? ")" : ", rule " + refusal.rule + ")";
  return refusal.remedy.empty() ? text : text + "\n  -> " + refusal.remedy;
}

Session::Session(Loop& loop, wire::HostPort server, Session* via, std::string program,
                 int64_t beat_most_ms, Handlers handlers)
    : loop_(loop),
      server_(std::move(server)),
      server_text_(TextOf(server_)),
      via_(via),
      program_(std::move(program)),
      beat_most_ms_(beat_most_ms),
      handlers_(std::move(handlers)) {}

Session::~Session() {
  loop_.Cancel(redial_);
  loop_.Cancel(beat_);
  loop_.Cancel(renewal_limit_);
}

void Session::Start() { Dial(); }

void Session::Leave() {
  is_over_ = true;
  if (is_up_) {
    wire::Message bye;
    bye.verb = wire::Verb::kBye;
    Tell(bye);
  }
}

std::unique_ptr<Control> Session::MakeControl(uint64_t number, std::string& error) {
  const std::string first = via_ != nullptr ? via_->MintConnect(server_text_, {}, false) : "";
  if (via_ != nullptr && first.empty()) {
    error = "the inner relay is away";
    return nullptr;
  }
  Control::Handlers handlers;
  handlers.on_open = [this, number] { Greet(number == renewing_number_ ? *renewing_ : *control_); };
  handlers.on_message = [this, number](const wire::Message& message) {
    // A renewal's WELCOME ends the old connection, which may not be the one whose handler this is.
    if (message.verb != wire::Verb::kWelcome || renewing_ == nullptr ||
        number == renewing_number_) {
      OnMessage(message);
    }
  };
  handlers.on_closed = [this, number](const std::string& why) { OnControlClosed(number, why); };
  return std::make_unique<Control>(loop_, dial_address(), first, server_.host, context_.get(),
                                   handlers);
}

void Session::Dial() {
  control_.reset();
  std::string error;
  stamp_ = CredentialStamp();
  const std::string token = ReadToken(error);
  if (error.empty()) {
    context_ = MakeContext(!token.empty(), error);
  }
  if (!error.empty()) {
    is_over_ = true;
    handlers_.on_refused({wire::Code::kUnauthenticated, error, "", ""});
    return;
  }
  if (via_ == nullptr && !LookUp(server_, place_, error)) {
    OnClosed("its name cannot be resolved: " + error);
    return;
  }
  control_ = MakeControl(++control_number_, error);
  if (control_ == nullptr) {
    OnClosed(error);
  }
}

// A session ends with its credential, unless it is resumed with a later one.
void Session::Renew() {
  stamp_ = CredentialStamp();
  std::string error;
  const std::string token = ReadToken(error);
  ContextPtr context = error.empty() ? MakeContext(!token.empty(), error) : nullptr;
  if (context == nullptr) {
    stamp_.clear();  // half written, perhaps: at the next beat again
    return;
  }
  context_ = std::move(context);
  renewing_number_ = control_number_ + 1;
  renewing_ = MakeControl(renewing_number_, error);
  if (renewing_ == nullptr) {
    stamp_.clear();
  }
  renewal_limit_ = loop_.After(kRenewalMs, [this] { EndRenewal(); });
}

// We go on with the connection that we had, if it still stands, and try again at the next beat.
void Session::EndRenewal() {
  loop_.Cancel(renewal_limit_);
  if (renewing_ != nullptr) {
    stamp_.clear();
  }
  renewing_.reset();
  renewing_number_ = 0;
  const auto held = std::exchange(held_, {});
  for (size_t i = 0; control_ != nullptr && i < held.size(); ++i) {
    control_->Send(held[i]);
  }
  if (const std::string why = std::exchange(lost_, ""); !why.empty()) {
    OnClosed(why);
  }
}

void Session::OnControlClosed(uint64_t number, const std::string& why) {
  if (renewing_ == nullptr) {
    OnClosed(why);
  } else if (number == control_number_) {
    lost_ = why;  // the relay ends it once the other one is greeted
  } else {
    loop_.Cancel(renewal_limit_);
    renewal_limit_ = loop_.After(0, [this] { EndRenewal(); });  // not from its own handler
  }
}

// Draining, exhausted; or a token that ended while whoever renews it was away.
bool Session::MayComeAgain(uint64_t number) const {
  const auto code = static_cast<wire::Code>(number);
  return number == 0 || code == wire::Code::kDraining || code == wire::Code::kExhausted ||
         (code == wire::Code::kTokenExpired && welcome_.session != 0);
}

void Session::Greet(Control& control) {
  wire::Message hello;
  hello.verb = wire::Verb::kHello;
  hello.id = next_id_++;
  hello.version = wire::kVersion;
  hello.program = program_;
  hello.hops = via_ != nullptr ? 1 : 0;
  hello.session = welcome_.session;
  hello.key = welcome_.key;
  std::string unused;
  hello.token = ReadToken(unused);
  waiting_[hello.id] = [this](const wire::Message& answer) {
    if (answer.verb == wire::Verb::kWelcome) {
      OnWelcome(answer);
    } else if (renewing_ != nullptr) {
      loop_.Cancel(renewal_limit_);
      renewal_limit_ = loop_.After(0, [this] { EndRenewal(); });
    } else if (answer.verb == wire::Verb::kError && answer.id != 0 && !MayComeAgain(answer.code)) {
      is_over_ = true;
      loop_.After(0, [this] { control_.reset(); });
      handlers_.on_refused(RefusalOf(answer));
    }
  };
  control.Send(hello);
}

void Session::OnWelcome(const wire::Message& message) {
  const bool is_resumed = welcome_.session != 0 && welcome_.session == message.session;
  const bool is_renewed = renewing_ != nullptr;
  if (!is_resumed) {
    counter_ = 0;
  }
  welcome_ = message;
  if (is_renewed) {
    control_ = std::move(renewing_);
    control_number_ = std::exchange(renewing_number_, 0);
    lost_.clear();
    FailAllBut(held_);  // what the other connection has taken along
    EndRenewal();
  }
  is_up_ = true;
  backoff_ms_ = 0;
  loop_.Cancel(beat_);
  beat_ = loop_.After(0, [this] { Beat(); });  // it may drop the connection whose handler this is
  if (!is_renewed || !is_resumed) {
    handlers_.on_up(is_resumed);
  }
}

void Session::Beat() {
  const uint64_t relay_s =
      welcome_.heartbeat_s != 0 ? std::min<uint64_t>(welcome_.heartbeat_s, 3600) : kHeartbeatS;
  const int64_t interval_ms = std::min(static_cast<int64_t>(1000 * relay_s), beat_most_ms_);
  if (control_ != nullptr && loop_.now_ms() - control_->last_heard_ms() > 3 * interval_ms) {
    Drop();
    return;
  }
  if (renewing_ == nullptr && CredentialStamp() != stamp_) {
    Renew();
  }
  wire::Message ping;
  ping.verb = wire::Verb::kPing;
  Ask(ping, [](const wire::Message&) {});
  beat_ = loop_.After(interval_ms, [this] { Beat(); });
}

void Session::Drop() {
  control_.reset();
  renewing_.reset();
  renewing_number_ = 0;
  loop_.Cancel(renewal_limit_);
  held_.clear();
  lost_.clear();
  OnClosed("it has said nothing for three heartbeats");
}

void Session::OnMessage(const wire::Message& message) {
  const auto found = waiting_.find(message.id);
  if (message.id != 0 && found != waiting_.end()) {
    const OnAnswer on_answer = std::move(found->second);
    waiting_.erase(found);
    on_answer(message);
    return;
  }
  handlers_.on_message(message);
}

void Session::FailAllBut(const std::vector<wire::Message>& held) {
  auto waiting = std::exchange(waiting_, {});
  for (const wire::Message& message : held) {
    waiting_.insert(waiting.extract(message.id));
  }
  waiting_.swap(waiting);
  FailAll("its connection was renewed");
  waiting_.merge(waiting);
}

void Session::FailAll(const std::string& why) {
  const auto waiting = std::move(waiting_);
  waiting_.clear();
  for (const auto& [id, on_answer] : waiting) {
    wire::Message error = wire::ErrorMessage(0, wire::Code::kDraining, "the relay is away: " + why);
    on_answer(error);
  }
}

void Session::OnClosed(const std::string& why) {
  is_up_ = false;
  loop_.Cancel(beat_);
  FailAll(why);
  if (is_over_) {
    return;
  }
  handlers_.on_down(why);
  // The first try at once, if we had been up.
  const int64_t jitter_ms =
      backoff_ms_ == 0 ? 0 : static_cast<int64_t>(random_() % (backoff_ms_ / 2 + 1));
  const int64_t wait_ms = backoff_ms_ / 2 + jitter_ms;
  backoff_ms_ = std::clamp(2 * backoff_ms_, kBackoffMinMs, kBackoffMaxMs);
  loop_.Cancel(redial_);
  redial_ = loop_.After(wait_ms, [this] { Dial(); });
}

void Session::Ask(wire::Message message, OnAnswer on_answer) {
  if (!is_up_ || control_ == nullptr) {
    on_answer(wire::ErrorMessage(0, wire::Code::kDraining, "the relay is away"));
    return;
  }
  message.id = next_id_++;
  next_id_ = std::max(next_id_, 1u);
  waiting_[message.id] = std::move(on_answer);
  if (renewing_ != nullptr) {
    held_.push_back(std::move(message));
  } else {
    control_->Send(message);
  }
}

void Session::Tell(wire::Message message) {
  if (is_up_ && control_ != nullptr) {
    message.id = next_id_++;
    if (renewing_ != nullptr) {
      held_.push_back(std::move(message));
    } else {
      control_->Send(message);
    }
  }
}

std::string Session::Mint(wire::Preface preface) {
  if (welcome_.session == 0) {
    return "";
  }
  std::string before;
  if (via_ != nullptr) {
    before = via_->MintConnect(server_text_, {}, false);
    if (before.empty()) {
      return "";
    }
  }
  preface.session = welcome_.session;
  preface.counter = ++counter_;
  const std::string own = wire::Seal(preface, welcome_.key);
  return own.empty() ? "" : before + own;
}

std::string Session::MintConnect(const std::string& target, const wire::Address& from,
                                 bool wants_opening) {
  wire::Preface preface;
  preface.kind = wire::Kind::kConnect;
  preface.wants_opening = wants_opening;
  preface.from = from;
  preface.target = target;
  return Mint(preface);
}

std::string Session::MintAccept(uint64_t stream) {
  wire::Preface preface;
  preface.kind = wire::Kind::kAccept;
  preface.stream = stream;
  return Mint(preface);
}

}  // namespace sekisho::nxproxy::client
