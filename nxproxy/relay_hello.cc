// SPDX-License-Identifier: Apache-2.0
// HELLO: who the client is, and the session that it opens or comes back to.
#include <openssl/crypto.h>

#include "common/identity/chain.h"
#include "common/identity/job_token.h"
#include "common/log.h"
#include "common/refusal.h"
#include "nxproxy/errors.h"
#include "nxproxy/relay_parts.h"

namespace sekisho::nxproxy {
namespace {

identity::Time Now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

bool IsSame(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string StatusText(const absl::Status& status) { return sekisho::Message(status); }

}  // namespace

MaybeRefusal Relay::JudgeToken(const std::string& text, Caller& caller,
                               int64_t& not_after_s) const {
  const std::chrono::seconds tolerance(limits_.token_tolerance_s);
  const auto verified = identity::VerifyJobToken(
      text, *trust_, Now(), std::chrono::seconds(limits_.token_life_s), tolerance);
  if (!verified.ok()) {
    return verified.status().code() == absl::StatusCode::kDeadlineExceeded
               ? errors::TokenExpired(StatusText(verified.status()))
               : errors::BadToken(StatusText(verified.status()));
  }
  if (auto refusal = policy_.AcceptIssuer(verified->signer.subject, verified->token.site)) {
    return refusal;
  }
  caller = {verified->token.owner, verified->token.job, verified->token.site, false};
  // With the tolerance: a session that ended before its token is refused would be opened again and
  // again.
  not_after_s = (verified->token.not_after + tolerance).time_since_epoch().count();
  return std::nullopt;
}

MaybeRefusal Relay::Identify(Client& client, const wire::Message& hello, Caller& caller,
                             int64_t& not_after_s) const {
  const identity::Chain chain = client.control->PeerChain();
  if (chain.empty() && hello.token.empty()) {
    return errors::NoCredential();
  }
  if (!chain.empty()) {
    const auto identity = identity::VerifyChain(chain, *trust_, Now(), identity::Purpose::kClient);
    if (!identity.ok()) {
      return errors::BadChain(StatusText(identity.status()));
    }
    caller = {identity->subject, "", "", identity->is_limited};
    not_after_s = identity->not_after.time_since_epoch().count();
  }
  if (!hello.token.empty()) {
    if (auto refusal = JudgeToken(hello.token, caller, not_after_s)) {
      return refusal;
    }
  }
  return policy_.Admit(caller);
}

MaybeRefusal Relay::Hello(Client& client, const wire::Message& hello) {
  if (is_draining_) {
    return errors::Draining();
  }
  if (hello.hops > limits_.hops) {
    return errors::TooManyHops(hello.hops, limits_.hops);
  }
  Caller caller;
  int64_t not_after_s = 0;
  if (auto refusal = Identify(client, hello, caller, not_after_s)) {
    return refusal;
  }
  Session* session = hello.session != 0 ? registry_.FindSession(hello.session) : nullptr;
  if (session != nullptr && IsSame(session->key, hello.key)) {
    if (!(session->caller == caller)) {
      return errors::OtherIdentity();
    }
    if (Client* before = doors_[session->id].client; before != nullptr) {
      before->session = 0;  // a connection that its client has given up
      before->control->Finish("resumed elsewhere");
    }
    session->not_after_s = not_after_s;
    registry_.Attach(*session);
  } else {
    const uint64_t id = RandomId();
    if (auto refusal =
            registry_.OpenSession(id, RandomBytes(wire::kSecretBytes), caller, not_after_s)) {
      return refusal;
    }
    session = registry_.FindSession(id);
  }
  client.session = session->id;
  client.deadline_ms = 0;
  doors_[session->id].client = &client;
  spdlog::debug("session opened session={:x} owner=\"{}\" job={} program={} peer={}", session->id,
                Printable(caller.owner), Printable(caller.job), Printable(hello.program),
                wire::ToText(client.peer));

  wire::Message welcome;
  welcome.verb = wire::Verb::kWelcome;
  welcome.id = hello.id;
  welcome.version = wire::kVersion;
  welcome.session = session->id;
  welcome.key = session->key;
  welcome.site = config_.site();
  welcome.job = caller.job;
  welcome.owner = caller.owner;
  welcome.address = wire::JoinHostPort(PublicIp(client), port_);
  welcome.heartbeat_s = static_cast<uint64_t>(limits_.heartbeat_s);
  welcome.grace_s = static_cast<uint64_t>(limits_.grace_s);
  welcome.spares = limits_.spares;
  welcome.upstream = config_.upstream().address();
  welcome.encrypt = config_.policy().encrypt() ? 1 : 0;
  client.control->Send(welcome);
  for (const uint64_t id : session->endpoints) {  // those who came in the meantime
    if (const auto at = waiting_.find(id); at != waiting_.end()) {
      for (const Waiting& waiting : at->second) {
        Announce(*registry_.FindEndpoint(id), waiting);
      }
    }
  }
  return std::nullopt;
}

std::string Relay::PublicIp(const Client& client) const {
  if (!config_.address().empty()) {
    return config_.address();
  }
  return wire::IpText(client.control->local());
}

}  // namespace sekisho::nxproxy
