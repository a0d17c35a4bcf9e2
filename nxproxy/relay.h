// SPDX-License-Identifier: Apache-2.0
// The relay: docs/protocol/10-nxproxy.md.  One thread owns all of this and moves the bytes of young
// streams; those of others move on threads of their own.
//
// relay.cc: start, stop, time.  relay_greeting.cc: what comes in at the one port.  relay_hello.cc: who
// it is.  relay_verbs.cc: the control connection's other messages.  relay_streams.cc: peers, spares,
// targets, and joining two of them.  relay_joined.cc: who moves what was joined, and its end.
// relay_report.cc: lists and figures.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "common/identity/trust_store.h"
#include "nxproxy/control.h"
#include "nxproxy/data_loop.h"
#include "nxproxy/listener.h"
#include "nxproxy/refusal_log.h"
#include "nxproxy/registry.h"
#include "nxproxy/wire/preface.h"

namespace sekisho::nxproxy {

class Relay {
 public:
  // The configuration and the poller outlive the relay.
  Relay(Poller& poller, const Config& config, Policy policy);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Reads identity and reservations, opens the ports.
  absl::Status Start();
  void EndTurn();             // after the poller's events: streams that have ended, or go to a thread
  void Tick(int64_t now_ms);  // every 100 ms
  absl::Status Reload();      // certificates and authorities
  void SetPolicy(Policy policy) { policy_ = std::move(policy); }  // for what is asked from now on; what stands goes on
  void Drain();               // takes no more; what stands goes on
  size_t streams() const;

  std::string Metrics() const;
  std::string List() const;  // JSON

  // For the part that exposes: one more stream between two sockets.
  void Join(Descriptor outside, Descriptor inside, std::string first,
            std::shared_ptr<Traffic> traffic);
  const identity::Credential& host() const { return host_; }
  const identity::TrustStore& trust() const { return *trust_; }
  uint16_t port() const { return port_; }

 private:
  struct Greeting;
  struct Client;
  struct Dial;

  // A peer that waits for the inside, or whose target is being dialled.
  struct Waiting {
    uint64_t stream = 0;
    Descriptor socket;
    wire::Address address;  // as the inside shall see it
    wire::Address dialled;  // the endpoint's
    uint64_t endpoint = 0;
    std::string owner;  // whose quota it counts against
    std::string first;  // what it has sent already
    bool wants_opening = false;
    uint64_t session = 0;  // its own, if it came with a ticket
    uint64_t counter = 0;
    int64_t deadline_ms = 0;
  };
  // What a session has besides its registry's entry.
  struct Doors {
    Client* client = nullptr;
    std::deque<Descriptor> spares;
  };

  // relay_report.cc.  JSON; of one caller, or all; those behind `place`, which is then 0 or where to go on.
  std::string Page(const Caller* only, uint64_t& place, size_t bytes_max) const;

  // relay_greeting.cc
  void Accepted(Descriptor socket, const wire::Address& peer);
  void MakeRoom(const wire::Address& peer);
  void MoreOf(Greeting& greeting);
  bool Sniff(Descriptor& socket, const wire::Address& peer, std::string& bytes);
  void DropGreeting(Greeting& greeting);
  void TakePreface(Descriptor socket, const wire::Address& peer, std::string_view bytes,
                   size_t length);
  void StartControl(Descriptor socket, const wire::Address& peer, std::string_view first);

  // relay_hello.cc
  MaybeRefusal Hello(Client& client, const wire::Message& hello);
  MaybeRefusal Identify(Client& client, const wire::Message& hello, Caller& caller,
                        int64_t& not_after_s) const;
  MaybeRefusal JudgeToken(const std::string& text, Caller& caller, int64_t& not_after_s) const;
  std::string PublicIp(const Client& client) const;

  // relay_verbs.cc
  void Received(Client& client, wire::Message message);
  void Lost(Client& client, const std::string& why);
  MaybeRefusal Bind(Client& client, Session& session, const wire::Message& bind);
  MaybeRefusal TakeBack(Client& client, Session& session, const wire::Message& bind);
  Descriptor ListenAt(uint16_t port) const;  // closed, and errno, if it cannot
  MaybeRefusal OpenPort(const Session& session, const wire::Message& bind, Descriptor& socket,
                        uint16_t& port);
  MaybeRefusal Resolve(Client& client, Session& session, const wire::Message& message);
  wire::Message Resolved(const Session& session, const Endpoint& endpoint);
  void TellOthers(Client& client, const Session& session, const wire::Message& asked, int64_t& due_s);
  MaybeRefusal Invite(Client& client, const Session& session, const wire::Message& message);
  MaybeRefusal Unbind(Client& client, Session& session, const wire::Message& message);
  void Bye(Client& client, uint64_t session);
  void Listen(Endpoint& endpoint, Descriptor socket);
  void RemoveEndpoint(uint64_t id);
  void CloseSession(uint64_t id);

  // relay_streams.cc
  void PeerCame(uint64_t endpoint, Descriptor socket, const wire::Address& peer);
  void Await(Waiting waiting, Endpoint& endpoint);
  void ConnectTicket(Session& session, const wire::Preface& preface, Waiting waiting);
  void AcceptTicket(Session& session, uint64_t stream, Descriptor socket);
  bool Open(Waiting& waiting, Descriptor& inside);
  void Dialled(Dial& dial, int error);
  void Refuse(Waiting waiting, const Refusal& refusal);
  void RefuseSocket(Descriptor socket, bool wants_opening, const Refusal& refusal);
  void Say(const Refusal& refusal, const std::string& who);
  bool IsOwn(const wire::Address& address) const;
  void ExpireWaiting(int64_t now_ms);
  void SweepSpares();
  void Announce(const Endpoint& endpoint, const Waiting& waiting);
  bool TakeWaiting(Session& session, uint64_t stream, Waiting& out);

  // relay_joined.cc
  void Launch(std::unique_ptr<Stream> stream, size_t early);
  void HandOver(StreamLoop::Streams streams);
  void Ended();
  void Bury(const Stream& stream);  // the last to look at it

  Poller& poller_;
  const Config& config_;
  const Limits limits_;
  Policy policy_;
  identity::Credential host_;
  TlsContext server_tls_;
  std::shared_ptr<const identity::TrustStore> trust_;
  uint64_t trust_version_ = 0;
  Journal journal_;
  Registry registry_;
  RefusalLog refusals_;
  std::vector<wire::Address> own_;
  wire::Address listen_;
  wire::Address upstream_;

  std::unique_ptr<Listener> listener_;
  uint16_t port_ = 0;
  std::map<uint64_t, std::unique_ptr<Listener>> doors_open_;  // by endpoint
  std::list<std::unique_ptr<Greeting>> greetings_;            // the oldest first
  std::map<std::string, size_t> greeting_by_peer_;
  std::unordered_map<Client*, std::unique_ptr<Client>> clients_;
  std::unordered_map<uint64_t, Doors> doors_;        // by session
  std::map<uint64_t, std::deque<Waiting>> waiting_;  // by endpoint
  std::unordered_map<Dial*, std::unique_ptr<Dial>> dials_;
  std::deque<std::pair<int64_t, Descriptor>> lingering_;  // refused, to be closed at that time
  std::vector<std::shared_ptr<void>> dead_;               // destroyed when the turn is over
  uint64_t next_stream_ = 1;
  std::vector<Stream*> streams_;  // all that stand, on whichever thread
  uint64_t streams_total_ = 0;
  std::shared_ptr<Traffic> all_traffic_ = std::make_shared<Traffic>();
  uint64_t handshakes_ = 0;
  int64_t now_ms_ = 0;
  int64_t second_ = 0;
  bool is_draining_ = false;

  class EndedReader;
  std::unique_ptr<EndedReader> ended_;
  std::unique_ptr<StreamLoop> nursery_;  // of short streams; most never leave this thread
  std::vector<std::unique_ptr<DataLoop>> loops_;  // destroyed first: it writes to ended_
};

}  // namespace sekisho::nxproxy
