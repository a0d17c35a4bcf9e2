// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/registry.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "nxproxy/errors.h"

namespace sekisho::nxproxy {
namespace {

// Whether `inside`, "10.1.0.11:80,[fd00::1]:80@siteA", has the address `place`, or an address with
// its port if `place` names the job.
bool ListensAt(std::string_view inside, std::string_view place, const std::string& job) {
  const size_t colon = place.rfind(':');
  const bool is_job =
      !job.empty() && colon != std::string_view::npos && place.substr(0, colon) == job;
  std::string_view list = inside.substr(0, inside.find('@'));
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(one.size() + 1, list.size()));
    if (one == place || (is_job && one.ends_with(place.substr(colon)))) {
      return true;
    }
  }
  return false;
}

std::string_view SiteOf(std::string_view inside) {
  const size_t at = inside.find('@');
  return at == std::string_view::npos ? std::string_view() : inside.substr(at + 1);
}

}  // namespace

Account& Registry::AccountOf(const std::string& owner) {
  const auto [at, is_new] = accounts_.try_emplace(owner);
  if (is_new) {
    at->second.traffic->owner = owner;
  }
  if (is_new && limits_.bytes_per_s > 0) {
    at->second.traffic->is_limited = true;
    at->second.traffic->allowance = limits_.bytes_per_s / 10;
  }
  return at->second;
}

void Registry::DropIfEmpty(const std::string& owner) {
  const auto at = accounts_.find(owner);
  if (at != accounts_.end() && at->second.sessions == 0 && at->second.endpoints == 0 &&
      at->second.streams == 0) {
    accounts_.erase(at);
  }
}

MaybeRefusal Registry::OpenSession(uint64_t id, std::string key, const Caller& caller,
                                   int64_t not_after_s) {
  Account& account = AccountOf(caller.owner);
  if (account.sessions >= limits_.sessions) {
    return errors::Quota("quota-sessions", limits_.sessions, "sessions");
  }
  ++account.sessions;
  Session session;
  session.id = id;
  session.key = std::move(key);
  session.caller = caller;
  session.not_after_s = not_after_s;
  sessions_.emplace(id, std::move(session));
  return std::nullopt;
}

Session* Registry::FindSession(uint64_t id) {
  const auto at = sessions_.find(id);
  return at == sessions_.end() ? nullptr : &at->second;
}

void Registry::Attach(Session& session) {
  session.is_attached = true;
  session.orphaned_until_s = 0;
}

void Registry::Detach(Session& session, int64_t now_s) {
  session.is_attached = false;
  constexpr int64_t kTicketsInFlight_s = 5;  // with no endpoint there is nothing to come back for
  session.orphaned_until_s =
      now_s + (session.endpoints.empty() ? kTicketsInFlight_s : limits_.grace_s);
}

std::vector<uint64_t> Registry::CloseSession(uint64_t id) {
  const auto at = sessions_.find(id);
  if (at == sessions_.end()) {
    return {};
  }
  const std::vector<uint64_t> gone(at->second.endpoints.begin(), at->second.endpoints.end());
  const std::string owner = at->second.caller.owner;
  for (const uint64_t endpoint : gone) {
    RemoveEndpoint(endpoint);
  }
  sessions_.erase(at);
  --AccountOf(owner).sessions;
  DropIfEmpty(owner);
  return gone;
}

MaybeRefusal Registry::MayBind(const Session& session) const {
  const auto account = accounts_.find(session.caller.owner);
  if (account != accounts_.end() && account->second.endpoints >= limits_.endpoints) {
    return errors::Quota("quota-endpoints", limits_.endpoints, "endpoints");
  }
  return std::nullopt;
}

Endpoint& Registry::AddEndpoint(Reservation reservation, std::vector<Network> allow,
                                Session* session, int64_t now_s) {
  const uint64_t id = reservation.id;
  ++AccountOf(reservation.caller.owner).endpoints;
  ports_[reservation.port] = id;
  Endpoint& endpoint = endpoints_[id];
  endpoint.reserved = std::move(reservation);
  endpoint.allow = std::move(allow);
  if (session != nullptr) {
    endpoint.session = session->id;
    session->endpoints.insert(id);
  } else {
    endpoint.orphaned_until_s = now_s + limits_.grace_s;
  }
  return endpoint;
}

MaybeRefusal Registry::Reclaim(uint64_t id, const std::string& secret_hash, Session& session,
                               Endpoint*& endpoint) {
  Endpoint* found = FindEndpoint(id);
  if (found == nullptr) {
    return errors::NoSuchEndpoint(fmt::format("{:x}", id));
  }
  const Caller& owner = found->reserved.caller;
  if (found->reserved.secret_hash != secret_hash || owner.owner != session.caller.owner ||
      owner.job != session.caller.job || owner.site != session.caller.site) {
    return errors::NotOwner();
  }
  if (Session* before = FindSession(found->session); before != nullptr) {
    before->endpoints.erase(id);
  }
  found->session = session.id;
  found->orphaned_until_s = 0;
  session.endpoints.insert(id);
  endpoint = found;
  return std::nullopt;
}

bool Registry::RemoveEndpoint(uint64_t id) {
  const auto at = endpoints_.find(id);
  if (at == endpoints_.end()) {
    return false;
  }
  const std::string owner = at->second.reserved.caller.owner;
  ports_.erase(at->second.reserved.port);
  if (Session* session = FindSession(at->second.session); session != nullptr) {
    session->endpoints.erase(id);
  }
  endpoints_.erase(at);
  --AccountOf(owner).endpoints;
  DropIfEmpty(owner);
  return true;
}

Endpoint* Registry::FindEndpoint(uint64_t id) {
  const auto at = endpoints_.find(id);
  return at == endpoints_.end() ? nullptr : &at->second;
}

Endpoint* Registry::FindPort(uint16_t port) {
  const auto at = ports_.find(port);
  return at == ports_.end() ? nullptr : FindEndpoint(at->second);
}

Endpoint* Registry::FindInside(const std::string& place, const std::string& site,
                               const Caller& caller) {
  Endpoint* best = nullptr;
  auto best_rank = std::tuple(false, false, uint64_t{0});
  for (auto& [id, endpoint] : endpoints_) {
    const Reservation& reserved = endpoint.reserved;
    if (!caller.SharesWith(reserved.caller) ||
        !ListensAt(reserved.inside, place, reserved.caller.job)) {
      continue;
    }
    const Session* session = FindSession(endpoint.session);
    const auto rank = std::tuple(!site.empty() && SiteOf(reserved.inside) == site,
                                 session != nullptr && session->is_attached, id);
    if (best == nullptr || rank > best_rank) {
      best = &endpoint;
      best_rank = rank;
    }
  }
  return best;
}

uint16_t Registry::FreeJobPort() {
  const int first = limits_.job_port_first;
  const int count = limits_.job_port_last - first + 1;
  for (int tried = 0; tried < count; ++tried) {
    const auto port = static_cast<uint16_t>(first + next_job_port_);
    next_job_port_ = static_cast<uint16_t>((next_job_port_ + 1) % count);
    if (ports_.find(port) == ports_.end()) {
      return port;
    }
  }
  return 0;
}

MaybeRefusal Registry::MayReach(const Endpoint& endpoint, const Caller& caller) const {
  if (endpoint.reserved.scope == wire::Scope::kJob &&
      !caller.SharesWith(endpoint.reserved.caller)) {
    return errors::OtherJob(endpoint.reserved.ip + ":" + std::to_string(endpoint.reserved.port));
  }
  return std::nullopt;
}

MaybeRefusal Registry::TakeStream(const std::string& owner) {
  Account& account = AccountOf(owner);
  if (account.streams >= limits_.streams) {
    return errors::Quota("quota-streams", limits_.streams, "streams");
  }
  ++account.streams;
  return std::nullopt;
}

void Registry::StreamEnded(const std::string& owner) {
  --AccountOf(owner).streams;
  DropIfEmpty(owner);
}

Registry::Expired Registry::Expire(int64_t now_s, int64_t wall_s) const {
  Expired out;
  for (const auto& [id, session] : sessions_) {
    if ((!session.is_attached && now_s >= session.orphaned_until_s) ||
        wall_s > session.not_after_s) {
      out.sessions.push_back(id);
    }
  }
  for (const auto& [id, endpoint] : endpoints_) {
    if (endpoint.session == 0 && now_s >= endpoint.orphaned_until_s) {
      out.endpoints.push_back(id);
    }
  }
  return out;
}

void Registry::Refill() {
  if (limits_.bytes_per_s == 0) {
    return;
  }
  for (auto& [owner, account] : accounts_) {
    const int64_t most = limits_.bytes_per_s / 5;  // 200 ms of burst
    const int64_t now = account.traffic->allowance.load();
    account.traffic->allowance.fetch_add(std::min(limits_.bytes_per_s / 10, most - now));
  }
}

}  // namespace sekisho::nxproxy
