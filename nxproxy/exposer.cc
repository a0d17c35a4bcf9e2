// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/exposer.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "common/config.h"
#include "common/identity/chain.h"
#include "common/identity/host.h"
#include "common/log.h"
#include "common/refusal.h"
#include "nxproxy/exposer_doors.h"

namespace sekisho::nxproxy {
namespace {

constexpr int64_t kDial_ms = 5000;

}  // namespace

class Exposer::DialHandler final : public Handler {
 public:
  explicit DialHandler(Exposer& owner) : owner_(owner) {}
  void OnEvents(uint32_t /*events*/) override { owner_.Established(); }

 private:
  Exposer& owner_;
};

Exposer::Exposer(Poller& poller, const Config& config, Relay& relay)
    : poller_(poller),
      config_(config),
      relay_(relay),
      dial_handler_(std::make_unique<DialHandler>(*this)) {}

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::Make(Poller& poller, const Config& config,
                                                       Relay& relay) {
  std::unique_ptr<Exposer> exposer(new Exposer(poller, config, relay));
  exposer->file_ = OrDefault(config.state_directory(), "/var/lib/sekisho/nxproxy") + "/exposed";
  exposer->bound_ = ReadExposed(exposer->file_);
  for (int i = 0; i < config.expose_size(); ++i) {
    const auto& given = config.expose(i);
    const auto target = wire::ParseHostPort(given.target());
    if (!target || given.port() < 0 || given.port() > 65535 || !ParseNetworks(given.allow())) {
      return absl::InvalidArgumentError(
          fmt::format("expose[{}]: expected a target HOST:PORT, a port and networks", i));
    }
    if (given.target() == config.upstream().address()) {
      return absl::InvalidArgumentError(
          fmt::format("expose[{}].target: the upstream relay itself is a loop", i));
    }
    Exposure exposure;
    exposure.target = given.target();
    exposure.bind.verb = wire::Verb::kBind;
    exposure.bind.scope = static_cast<uint64_t>(wire::Scope::kPublic);
    exposure.bind.port = static_cast<uint64_t>(given.port());
    exposure.bind.inside = given.target();
    exposure.bind.label = "expose";
    exposure.bind.allow = given.allow();
    if (const auto before = exposer->bound_.find(exposure.Name());
        before != exposer->bound_.end()) {
      exposure.endpoint = before->second.endpoint;
      exposure.secret = before->second.secret;
    }
    exposer->exposures_.push_back(std::move(exposure));
    exposer->spares_wanted_ += given.spares() > 0 ? static_cast<size_t>(given.spares()) : 8;
  }
  if (!exposer->exposures_.empty()) {
    if (!config.has_upstream()) {
      return absl::InvalidArgumentError("expose needs an upstream");
    }
    ASSIGN_OR_RETURN(exposer->tls_, MakeTlsContext(relay.host(), false));
  }
  return exposer;
}

Exposer::~Exposer() {
  if (dialling_.is_open()) {
    poller_.Remove(dialling_.get());
  }
}

void Exposer::Dial() {
  dial_at_ms_ = now_ms_ + kDial_ms;
  const auto upstream = Resolve(config_.upstream().address());
  if (!upstream.ok()) {
    Lost(Message(upstream.status()));
    return;
  }
  upstream_ = *upstream;
  dialling_ = BeginConnect(upstream_);
  if (!dialling_.is_open()) {
    Lost(strerror(errno));
    return;
  }
  poller_.Add(dialling_.get(), EPOLLOUT, dial_handler_.get());
}

void Exposer::Established() {
  poller_.Remove(dialling_.get());
  Descriptor socket = std::move(dialling_);
  if (const int error = ConnectError(socket.get()); error != 0) {
    Lost(strerror(error));
    return;
  }
  TuneSocket(socket.get(), 60);
  const std::string host = wire::ParseHostPort(config_.upstream().address())->host;
  control_ = std::make_unique<Control>(
      poller_, std::move(socket), TlsChannel(*tls_, false, host),
      Control::Events{
          .established =
              [this, host] {
                const identity::Chain chain = control_->PeerChain();
                const auto now =
                    std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
                auto verdict =
                    identity::JudgeChain(chain, relay_.trust(), now, identity::Purpose::kServer);
                std::optional<identity::Refusal> refusal;
                if (const auto* no = std::get_if<identity::Refusal>(&verdict)) {
                  refusal = *no;
                } else {
                  const auto& server = std::get<identity::Identity>(verdict);
                  refusal = config_.upstream().subject().empty()
                                ? identity::CheckHost(chain, server, host)
                                : identity::CheckSubject(server, config_.upstream().subject());
                }
                if (refusal) {
                  control_->Finish("it is not the upstream: " +
                                   Message(identity::ToStatus(*refusal)));
                  return;
                }
                wire::Message hello;
                hello.verb = wire::Verb::kHello;
                hello.id = next_id_++;
                hello.version = wire::kVersion;
                hello.program = "sekisho-nxproxy";
                hello.session = session_;
                hello.key = key_;
                control_->Send(hello);
              },
          .received = [this](const wire::Message& message) { Received(message); },
          .lost = [this](const std::string& why) { Lost(why); }});
  control_->heard_ms = now_ms_;
  control_->Start("");
}

void Exposer::Lost(const std::string& why) {
  dial_at_ms_ = now_ms_ + back_off_.After(std::exchange(has_been_up_, false), RandomId()).count();
  is_greeted_ = false;
  for (Exposure& exposure : exposures_) {
    if (exposure.OnLost()) {  // a new session, then: without us this one's grace ends
      session_ = 0;
      key_.clear();
    }
  }
  if (control_ != nullptr) {
    dead_.push_back(std::shared_ptr<Control>(std::move(control_)));
  }
  spdlog::warn("upstream {} lost, next try in {} ms: {}", config_.upstream().address(),
               dial_at_ms_ - now_ms_, Printable(why));
}

void Exposer::Remember(const Exposure& exposure) {
  bound_.erase(exposure.Name());
  if (exposure.endpoint != 0) {
    bound_[exposure.Name()] = {exposure.endpoint, exposure.secret};
  }
  if (const absl::Status written = WriteExposed(file_, bound_); !written.ok()) {
    spdlog::error("{}", Message(written));
  }
}

void Exposer::BindDue() {
  for (Exposure& exposure : exposures_) {
    if (exposure.IsDue(now_ms_)) {
      control_->Send(exposure.Ask(next_id_++, RandomBytes(wire::kSecretBytes)));
    }
  }
}

void Exposer::Refused(Exposure& exposure, const wire::Message& error) {
  const auto code = static_cast<wire::Code>(error.code);
  if (exposure.OnRefused(code, now_ms_, RandomId())) {
    Remember(exposure);
  }
  const std::string why = fmt::format("{}: {}; {}", wire::Info(code).name, Printable(error.words),
                                      Printable(error.remedy));
  if (std::exchange(exposure.refused, why) != why) {  // not with each try
    spdlog::error("{} cannot be exposed, it is tried again: {}", exposure.target, why);
  }
}

void Exposer::Received(const wire::Message& message) {
  control_->heard_ms = now_ms_;
  const auto asked = std::find_if(exposures_.begin(), exposures_.end(), [&](const Exposure& one) {
    return one.asked != 0 && one.asked == message.id;
  });
  switch (message.verb) {
    case wire::Verb::kWelcome: {
      has_been_up_ = true;
      is_greeted_ = true;
      const bool is_resumed = message.session == session_;
      session_ = message.session;
      key_ = message.key;
      heartbeat_ms_ =
          static_cast<int64_t>(std::clamp<uint64_t>(message.heartbeat_s, 1, 300)) * 1000;
      if (!is_resumed) {
        counter_ = 0;
        for (auto& [door, owned] : doors_) {
          dead_.push_back(std::shared_ptr<Door>(std::move(owned)));
        }
        doors_.clear();
        spares_ = 0;
        for (Exposure& exposure : exposures_) {
          exposure.is_bound = false;
        }
      }
      BindDue();
      Refill();
      return;
    }
    case wire::Verb::kBound:
      if (asked != exposures_.end()) {
        asked->OnBound(message);
        Remember(*asked);
        spdlog::info("exposed target={} endpoint={}", asked->target, Printable(message.address));
      }
      return;
    case wire::Verb::kAnnounce:
      DialDoor(message.stream);
      return;
    case wire::Verb::kError:
      if (asked != exposures_.end()) {
        Refused(*asked, message);
        return;
      }
      has_been_up_ = false;  // or it would be dialled again at once, for ever
      control_->Finish("refused: " + message.words);
      return;
    case wire::Verb::kPing: {
      wire::Message pong;
      pong.verb = wire::Verb::kPong;
      pong.id = message.id;
      control_->Send(pong);
      return;
    }
    default:
      return;
  }
}

void Exposer::Tick(int64_t now_ms) {
  now_ms_ = now_ms;
  dead_.clear();
  if (exposures_.empty() || is_draining_) {
    return;
  }
  if (control_ == nullptr && dialling_.is_open() && now_ms >= dial_at_ms_) {
    poller_.Remove(dialling_.get());
    dialling_.reset();
    Lost("no answer");
  } else if (control_ == nullptr && !dialling_.is_open() && now_ms >= dial_at_ms_) {
    Dial();
  }
  if (control_ != nullptr && now_ms - pinged_ms_ >= heartbeat_ms_ / 2) {
    pinged_ms_ = now_ms;
    wire::Message ping;
    ping.verb = wire::Verb::kPing;
    ping.id = next_id_++;
    control_->Send(ping);
  }
  if (control_ != nullptr && now_ms - control_->heard_ms > 3 * heartbeat_ms_) {
    control_->Finish("silent for too long");
  }
  for (auto at = inners_.begin(); at != inners_.end();) {
    if (at->first->deadline_ms <= now_ms) {
      Reset(std::move(at->first->outside));
      at = inners_.erase(at);
    } else {
      ++at;
    }
  }
  if (is_greeted_) {
    BindDue();
  }
  Refill();
}

void Exposer::Drain() {
  is_draining_ = true;
  for (auto& [door, owned] : doors_) {
    dead_.push_back(std::shared_ptr<Door>(std::move(owned)));
  }
  doors_.clear();
  spares_ = 0;
}

}  // namespace sekisho::nxproxy
