// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/registry.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "nxproxy/errors.h"

namespace sekisho::nxproxy {
namespace {

// The addresses of `inside`, "10.1.0.11:80,[fd00::1]:80@siteA".
std::vector<std::string_view> PlacesOf(std::string_view inside) {
  std::vector<std::string_view> places;
  std::string_view list = inside.substr(0, inside.find('@'));
  while (!list.empty()) {
    places.push_back(list.substr(0, list.find(',')));
    list.remove_prefix(std::min(places.back().size() + 1, list.size()));
  }
  return places;
}

// Whether `inside` has the address `place`, or an address with its port if `place` names the job.
bool ListensAt(std::string_view inside, std::string_view place, const std::string& job) {
  const size_t colon = place.rfind(':');
  const bool is_job =
      !job.empty() && colon != std::string_view::npos && place.substr(0, colon) == job;
  const std::vector<std::string_view> places = PlacesOf(inside);
  return std::any_of(places.begin(), places.end(), [&](std::string_view one) {
    return one == place || (is_job && one.ends_with(place.substr(colon)));
  });
}

std::string_view SiteOf(std::string_view inside) {
  const size_t at = inside.find('@');
  return at == std::string_view::npos ? std::string_view() : inside.substr(at + 1);
}

bool IsOneOwner(const Caller& one, const Caller& other) {
  return one.owner == other.owner && one.job == other.job && one.site == other.site;
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

uint64_t Registry::FindSecret(const std::string& secret_hash, const Caller& caller) const {
  const auto at = std::find_if(endpoints_.begin(), endpoints_.end(), [&](const auto& entry) {
    return entry.second.reserved.secret_hash == secret_hash &&
           IsOneOwner(entry.second.reserved.caller, caller);
  });
  return at == endpoints_.end() ? 0 : at->first;
}

MaybeRefusal Registry::Reclaim(uint64_t id, const std::string& secret_hash, Session& session,
                               Endpoint*& endpoint) {
  Endpoint* found = FindEndpoint(id);
  if (found == nullptr) {
    return errors::NoSuchEndpoint(fmt::format("{:x}", id));
  }
  if (found->reserved.secret_hash != secret_hash ||
      !IsOneOwner(found->reserved.caller, session.caller)) {
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
  for (auto& [id, endpoint] : endpoints_) {
    const Reservation& reserved = endpoint.reserved;
    if (!caller.SharesWith(reserved.caller) ||
        !ListensAt(reserved.inside, place, reserved.caller.job)) {
      continue;
    }
    if (best == nullptr || RankFor(endpoint, site) > RankFor(*best, site)) {
      best = &endpoint;
    }
  }
  return best;
}

std::map<std::string, const Endpoint*> Registry::AllInside(const std::string& site,
                                                           const Caller& caller,
                                                           size_t most) const {
  std::map<std::string, const Endpoint*> all;
  for (const auto& [id, endpoint] : endpoints_) {
    const Reservation& reserved = endpoint.reserved;
    if (caller.job.empty() || reserved.caller.job != caller.job ||
        !caller.SharesWith(reserved.caller)) {
      continue;
    }
    for (const std::string_view place : PlacesOf(reserved.inside)) {
      const auto at = all.find(std::string(place));
      if (at == all.end() && all.size() < most) {
        all.emplace(place, &endpoint);
      } else if (at != all.end() && RankFor(endpoint, site) > RankFor(*at->second, site)) {
        at->second = &endpoint;
      }
    }
  }
  return all;
}

Registry::Rank Registry::RankFor(const Endpoint& endpoint, const std::string& site) const {
  const auto session = sessions_.find(endpoint.session);
  return {!site.empty() && SiteOf(endpoint.reserved.inside) == site,
          session != sessions_.end() && session->second.is_attached, endpoint.reserved.id};
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
