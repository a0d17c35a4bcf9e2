// SPDX-License-Identifier: Apache-2.0
// Sessions, endpoints and what each identity holds: docs/protocol/10-nxproxy.md.  Pure: time is an
// argument, secrets and numbers come in.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "nxproxy/limits.h"
#include "nxproxy/policy.h"
#include "nxproxy/reservations.h"
#include "nxproxy/stream.h"
#include "nxproxy/ticket_window.h"
#include "nxproxy/wire/message.h"

namespace sekisho::nxproxy {

// What one subject holds, over all of its sessions.
struct Account {
  size_t sessions = 0;
  size_t endpoints = 0;
  size_t streams = 0;
  std::shared_ptr<Traffic> traffic = std::make_shared<Traffic>();
};

struct Session {
  uint64_t id = 0;
  std::string key;
  Caller caller;
  int64_t not_after_s = 0;  // of the credential
  bool is_attached = true;
  int64_t orphaned_until_s = 0;
  TicketWindow tickets;
  std::set<uint64_t> endpoints;
  // When it may be told of the job's other endpoints again, with BOUND and with RESOLVED.
  int64_t bound_others_due_s = 0;
  int64_t resolved_others_due_s = 0;
};

struct Endpoint {
  Reservation reserved;
  uint64_t session = 0;  // 0: nobody's yet, after a restart
  std::vector<Network> allow;
  int64_t orphaned_until_s = 0;  // if nobody's
  std::shared_ptr<Traffic> traffic = std::make_shared<Traffic>();
  uint64_t streams = 0;
  uint64_t streams_total = 0;
  uint64_t refused = 0;
};

class Registry {
 public:
  explicit Registry(const Limits& limits) : limits_(limits) {}

  // A session for `caller`; quota-sessions.
  MaybeRefusal OpenSession(uint64_t id, std::string key, const Caller& caller, int64_t not_after_s);
  Session* FindSession(uint64_t id);
  // Its control connection is back, or lost.
  void Attach(Session& session);
  void Detach(Session& session, int64_t now_s);
  // Ends it; gives the endpoints that went with it.
  std::vector<uint64_t> CloseSession(uint64_t id);

  // Quota, before anything is done.
  MaybeRefusal MayBind(const Session& session) const;
  Endpoint& AddEndpoint(Reservation reservation, std::vector<Network> allow, Session* session,
                        int64_t now_s);
  // An endpoint that its owner takes back by its secret's hash.
  MaybeRefusal Reclaim(uint64_t id, const std::string& secret_hash, Session& session,
                       Endpoint*& endpoint);
  // The one of `caller`'s that has it; 0: none.
  uint64_t FindSecret(const std::string& secret_hash, const Caller& caller) const;
  bool RemoveEndpoint(uint64_t id);
  Endpoint* FindEndpoint(uint64_t id);
  Endpoint* FindPort(uint16_t port);
  // What `caller` shares and listens inside at `place`, an address or JOB:PORT.  Of several the one
  // at `site`, then one whose session is attached, then the newest.
  Endpoint* FindInside(const std::string& place, const std::string& site, const Caller& caller);
  // The same for every address at which somebody of `caller`'s job listens inside; at most `most`.
  std::map<std::string, const Endpoint*> AllInside(const std::string& site, const Caller& caller,
                                                   size_t most) const;
  // A number for a job endpoint; 0: none is free.
  uint16_t FreeJobPort();

  // May `caller` connect to it, from `peer`?
  MaybeRefusal MayReach(const Endpoint& endpoint, const Caller& caller) const;
  // One stream more of `owner`; quota-streams.
  MaybeRefusal TakeStream(const std::string& owner);
  void StreamEnded(const std::string& owner);

  Account& AccountOf(const std::string& owner);

  // What has outlived its grace or its credential: sessions to close, endpoints to remove.
  struct Expired {
    std::vector<uint64_t> sessions;
    std::vector<uint64_t> endpoints;
  };
  Expired Expire(int64_t now_s, int64_t wall_s) const;

  // New allowances, every 100 ms.
  void Refill();

  const std::map<uint64_t, Endpoint>& endpoints() const { return endpoints_; }
  const std::map<std::string, Account>& accounts() const { return accounts_; }
  size_t session_count() const { return sessions_.size(); }

 private:
  // Of endpoints with one inside address the greatest is meant by who asks from `site`.
  using Rank = std::tuple<bool, bool, uint64_t>;
  Rank RankFor(const Endpoint& endpoint, const std::string& site) const;
  void DropIfEmpty(const std::string& owner);

  const Limits& limits_;
  std::unordered_map<uint64_t, Session> sessions_;
  std::map<uint64_t, Endpoint> endpoints_;
  std::unordered_map<uint16_t, uint64_t> ports_;
  std::map<std::string, Account> accounts_;
  uint16_t next_job_port_ = 0;
};

}  // namespace sekisho::nxproxy
