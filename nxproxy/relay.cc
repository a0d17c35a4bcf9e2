// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/relay.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <nlohmann/json.hpp>

#include "common/config.h"
#include "common/log.h"
#include "common/refusal.h"
#include "nxproxy/errors.h"
#include "nxproxy/relay_parts.h"

namespace sekisho::nxproxy {
namespace {

constexpr int64_t kTrustEvery_s = 60;

StreamLimits StreamLimitsOf(const Config& config) {
  StreamLimits limits;
  Set(limits.half_closed_s, config.limits().half_closed_s());
  Set(limits.idle_s, config.limits().idle_s());
  Set(limits.lifetime_s, config.limits().lifetime_s());
  Set(limits.silent_s, config.limits().user_timeout_s());
  limits.may_splice = !config.no_splice();
  return limits;
}

// A stream that moves more than that at a time is not one of the short ones.
StreamLimits NurseryLimits(const Config& config) {
  StreamLimits limits = StreamLimitsOf(config);
  limits.pipes = 0;
  limits.turn_bytes = Stream::kBufferBytes;
  return limits;
}

size_t ThreadsOf(const Config& config) {
  return config.threads() > 0 ? static_cast<size_t>(config.threads())
                              : std::max(1u, std::thread::hardware_concurrency() / 2);
}

}  // namespace

Relay::Relay(Poller& poller, const Config& config, Policy policy)
    : poller_(poller),
      config_(config),
      limits_(LimitsOf(config.limits())),
      policy_(std::move(policy)),
      registry_(limits_),
      now_ms_(NowMs()) {}

Relay::~Relay() {
  loops_.clear();  // with the streams that stand, which streams_ still names: nobody is buried any more
  if (ended_ != nullptr) {
    ended_->Take();
  }
}

absl::Status Relay::Reload() {
  const std::string directory =
      OrDefault(config_.ca_directory(), "/etc/grid-security/certificates");
  const uint64_t version = identity::TrustVersion(directory);
  ASSIGN_OR_RETURN(auto trust, identity::TrustStore::Load(directory));
  ASSIGN_OR_RETURN(identity::Credential host,
                   identity::LoadHostCredential(config_.host_certificate(), config_.host_key()));
  ASSIGN_OR_RETURN(TlsContext context, MakeTlsContext(host, true));
  for (const std::string& warning : trust->warnings()) {
    spdlog::warn("{}", Printable(warning));
  }
  trust_ = std::move(trust);
  trust_version_ = version;
  host_ = std::move(host);
  server_tls_ = std::move(context);
  return absl::OkStatus();
}

absl::Status Relay::Start() {
  RETURN_IF_ERROR(Reload());
  own_ = OwnAddresses();
  const std::string listen = OrDefault(config_.listen(), "0.0.0.0:7514");
  if (config_.has_upstream()) {
    const auto upstream = sekisho::nxproxy::Resolve(config_.upstream().address());
    if (!upstream.ok() && upstream.status().code() == absl::StatusCode::kInvalidArgument) {
      return upstream.status();
    }
    upstream_ = upstream.ok() ? *upstream : wire::Address{};
  }
  ended_ = std::make_unique<EndedReader>(*this);
  nursery_ = std::make_unique<StreamLoop>(poller_.fd(), NurseryLimits(config_), true);
  poller_.SetTagged(nursery_.get());
  for (size_t i = 0; i < ThreadsOf(config_); ++i) {
    loops_.push_back(std::make_unique<DataLoop>(StreamLimitsOf(config_), ended_->write_fd()));
  }
  if (listen == "none") {
    return absl::OkStatus();
  }
  // A port of 0 is a test's; ParseAddress knows none.
  const bool is_any = listen.ends_with(":0");
  const auto address =
      wire::ParseAddress(is_any ? listen.substr(0, listen.size() - 1) + "1" : listen);
  if (!address) {
    return absl::InvalidArgumentError(
        fmt::format("listen: expected ADDRESS:PORT, got '{}'", listen));
  }
  listen_ = *address;
  listen_.port = is_any ? 0 : address->port;

  // Ports that were reserved before come first: nobody takes them in between.
  const std::string directory = OrDefault(config_.state_directory(), "/var/lib/sekisho/nxproxy");
  ASSIGN_OR_RETURN(const auto standing, journal_.Open(directory));
  for (const auto& [id, reservation] : standing) {
    auto allow = ParseNetworks(reservation.allow);
    Descriptor socket;
    if (reservation.scope == wire::Scope::kPublic) {
      socket = ListenAt(reservation.port);
      if (!socket.is_open()) {  // once more when its owner takes it back; its grace ends it, too
        spdlog::error(
            "endpoint {} of \"{}\" cannot be opened again: {}; free its port ('ss -ltnp' says who "
            "has it) before its owner comes back, for whom it is kept {} s, or it is lost",
            wire::JoinHostPort(reservation.ip, reservation.port),
            Printable(reservation.caller.owner), strerror(errno), limits_.grace_s);
      }
    }
    Endpoint& endpoint = registry_.AddEndpoint(reservation, allow.value_or(std::vector<Network>{}),
                                               nullptr, now_ms_ / 1000);
    if (socket.is_open()) {
      Listen(endpoint, std::move(socket));
    }
  }
  Descriptor socket = ListenOn(listen_);
  if (!socket.is_open()) {
    return absl::FailedPreconditionError(fmt::format("{}: {}", listen, strerror(errno)));
  }
  TuneSocket(socket.get(), limits_.user_timeout_s);  // accepted ones inherit it
  const int defer_s = 1;                             // accept when the first bytes have come
  setsockopt(socket.get(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &defer_s, sizeof defer_s);
  const int delays = 0;  // what acknowledges a preface can travel with the answer
  setsockopt(socket.get(), IPPROTO_TCP, TCP_QUICKACK, &delays, sizeof delays);
  // A preface that comes with its SYN is served a round trip earlier, where the system lets servers do that.  No
  // cookie: a ticket counts once, and says more than a cookie would.
  const int fast = 1024;
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_FASTOPEN, &fast, sizeof fast);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof on);
  port_ = LocalAddress(socket.get()).port;
  listener_ = std::make_unique<Listener>(
      poller_, std::move(socket),
      Listener::Events{
          .accepted = [this](Descriptor peer,
                             const wire::Address& from) { Accepted(std::move(peer), from); },
          .exhausted = [this] { Say(errors::Exhausted(), "everyone"); }});
  spdlog::info("relay listens port={} endpoints={}", port_, registry_.endpoints().size());
  return absl::OkStatus();
}

void Relay::Tick(int64_t now_ms) {
  now_ms_ = now_ms;
  dead_.clear();
  HandOver(nursery_->TakeAged());
  registry_.Refill();
  while (!greetings_.empty() && greetings_.front()->deadline_ms <= now_ms) {
    Say(errors::TooSlow(), wire::IpText(greetings_.front()->peer));
    DropGreeting(*greetings_.front());
  }
  ExpireWaiting(now_ms);
  if (now_ms / 1000 == second_) {
    return;
  }
  second_ = now_ms / 1000;
  std::vector<Client*> late;
  for (const auto& [client, owned] : clients_) {
    const bool is_slow = client->deadline_ms != 0 && client->deadline_ms <= now_ms;
    if (is_slow) {
      Say(errors::TooSlow(), wire::IpText(client->peer));
    }
    if (is_slow || client->control->heard_ms + 3000 * limits_.heartbeat_s <= now_ms) {
      late.push_back(client);
    }
  }
  for (Client* client : late) {
    client->control->Finish("silent for too long");
  }
  const Registry::Expired expired = registry_.Expire(second_, WallSeconds());
  for (const uint64_t session : expired.sessions) {
    CloseSession(session);
  }
  for (const uint64_t endpoint : expired.endpoints) {
    RemoveEndpoint(endpoint);
  }
  if (second_ % 5 == 0) {
    SweepSpares();
    own_ = OwnAddresses();
  }
  if (second_ % kTrustEvery_s == 0) {
    const std::string directory =
        OrDefault(config_.ca_directory(), "/etc/grid-security/certificates");
    if (identity::TrustVersion(directory) != trust_version_) {
      if (const absl::Status status = Reload(); !status.ok()) {
        spdlog::error("the last good version stays in force: {}",
                      Printable(sekisho::Message(status)));
      }
    }
  }
}

void Relay::Drain() {
  is_draining_ = true;
  listener_.reset();
  doors_open_.clear();
  wire::Message drain;
  drain.verb = wire::Verb::kDrain;
  drain.words = "the relay is stopping";
  for (const auto& [client, owned] : clients_) {
    client->control->Send(drain);
  }
  for (auto& [session, doors] : doors_) {
    doors.spares.clear();
  }
}

size_t Relay::streams() const { return streams_.size(); }

}  // namespace sekisho::nxproxy
