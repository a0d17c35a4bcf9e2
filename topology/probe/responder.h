// SPDX-License-Identifier: Apache-2.0
// Sends back what probes send that know the key, in bounds: so many connections, so many bytes a
// connection, none idle for long; who knows it and wants something else is handed on.  Needs no
// privilege.  docs/protocol/12-topology.md, "Probing".
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

#include "common/status.h"
#include "topology/probe/dialled.h"
#include "topology/probe/orders.h"

namespace sekisho::topology {

class Responder {
 public:
  using Clock = std::chrono::steady_clock;

  Responder() = default;
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // Port 0: any.
  absl::Status Listen(const std::string& address, uint16_t port);
  uint16_t port() const { return port_; }

  // Until there is one, nobody is let in.
  void SetKey(const ProbeKey& key);

  // Appends what to wait for.  poll(2) is the caller's, who also has other things to wait for.
  void Watch(std::vector<pollfd>& waits) const;
  // The very entries of the last Watch(), after poll(2).  To be called now and then in any case.
  void Handle(std::span<const pollfd> waits);

  size_t connections() const { return connections_.size(); }

  // Who has shown the key and wants no echo; the sockets are the caller's now.
  struct Visitor {
    int socket = -1;
    Wanted wanted = Wanted::kSink;
  };
  std::vector<Visitor> TakeVisitors();

 private:
  static constexpr size_t kHello = sizeof(ProbeKey) + 1;  // the key, and what is wanted

  struct Connection {
    int socket;
    std::array<char, kHello> shown{};
    size_t shown_size = 0;
    size_t bytes = 0;  // of pings
    Clock::time_point last;
  };
  // Of a connection that is readable.
  enum class Next { kKeep, kHandOn, kClose };
  Next Read(Connection& connection) const;
  Next ReadHello(Connection& connection) const;
  void Accept();

  int listener_ = -1;
  uint16_t port_ = 0;
  bool has_key_ = false;
  ProbeKey key_{};
  std::vector<Connection> connections_;
  std::vector<Visitor> visitors_;
};

}  // namespace sekisho::topology
