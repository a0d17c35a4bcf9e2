// SPDX-License-Identifier: Apache-2.0
// The program's listeners and their endpoints at the relay: docs/protocol/11-nxproxy-shim.md,
// "listen".
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nxproxy/client/porter/interfaces.h"
#include "nxproxy/client/porter/local_server.h"
#include "nxproxy/client/porter/session.h"

namespace sekisho::nxproxy::client {

// Which endpoints are asked for.
struct BindPlan {
  wire::Scope scope = wire::Scope::kJob;
  uint16_t first_port = 0;             // the public port of the first listener
  std::map<uint16_t, uint16_t> ports;  // public port by local port
  std::string label;                   // shown in listings
  bool ends_unreached = false;         // the command ends if it cannot reach others of its job
  std::string site;                    // where we are; may be unknown
  std::string direct;                  // $NXPROXY_DIRECT: private addresses that are outside
  std::optional<bool> is_inviting;     // $NXPROXY_REVERSE; unset: if our own address is public
  std::string links;                   // $NXPROXY_LINKS: a file for records of connections
  bool is_quiet = false;               // tells no addresses: the program knows them itself
  bool is_encrypted = false;           // end to end
};

struct Listener {
  uint64_t inode = 0;
  wire::Address local;
  bool is_v6 = false;
  bool is_v6_only = false;
  bool is_listening = false;
  pid_t pid = 0;  // who reserved it
};

struct Endpoint {
  uint64_t number = 0;  // ours, never another's: answers come late
  std::vector<Listener> listeners;
  wire::Scope scope = wire::Scope::kJob;
  uint16_t wanted_port = 0;
  int backlog = 0;
  uint64_t id = 0;  // 0: not bound, or not yet
  std::string secret;
  wire::Address address;  // at the relay
  bool is_encrypted = false;
  bool is_asked = false;                       // BIND is under way
  bool is_bound = false;                       // in this session
  bool is_told = false;                        // the user knows the address
  std::vector<std::shared_ptr<Asker>> askers;  // wait for BOUND
};

// What a connector may call it, if it means it: by its address at the relay or inside, or by port
// and job.
std::vector<std::string> Names(const Endpoint& endpoint, const std::string& job);

class Endpoints {
 public:
  using Say = std::function<void(const std::string& line)>;

  // `on_change`: one came or went.
  Endpoints(Session& session, BindPlan plan, Say say, std::function<void()> on_change);

  // LISTEN and RESERVE.
  void Add(const std::shared_ptr<Asker>& asker);
  // Those of another relay, here too.
  void Adopt(const Endpoints& others);
  // ADDRESS.
  const Endpoint* FindByInode(uint64_t inode) const;
  const Endpoint* FindById(uint64_t id) const;
  bool IsOwn(const wire::Address& address) const;  // the public address of one of them

  // The session is up: binds what is not bound, takes the rest back if the relay forgot it.
  void OnUp(bool is_resumed);
  // Ends the endpoints that nobody listens at any more, and asks again for those that the relay
  // could not give back; `listening`: inodes.
  void Sweep(const std::set<uint64_t>& listening);

  bool empty() const { return all_.empty(); }
  bool wants_v6() const;  // the last listener's family
  size_t refused_binds() const { return refused_binds_; }

 private:
  Endpoint& New();
  Endpoint* FindAlike(const Listener& listener);
  Endpoint* Find(uint64_t number);
  void Bind(Endpoint& endpoint);
  void OnBound(Endpoint& endpoint, const wire::Message& answer);
  void OnRefused(Endpoint& endpoint, const wire::Message& answer);
  void Tell(Endpoint& endpoint);
  void Unbind(uint64_t id);

  Session& session_;
  const BindPlan plan_;
  const Say say_;
  const std::function<void()> on_change_;
  std::list<Endpoint> all_;
  uint64_t numbers_ = 0;
  size_t added_ = 0;
  size_t refused_binds_ = 0;
};

}  // namespace sekisho::nxproxy::client
