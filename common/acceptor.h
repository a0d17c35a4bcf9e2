// SPDX-License-Identifier: Apache-2.0
// A listening port or Unix socket of a daemon that strangers can reach.  gRPC's own listener takes
// connections without a limit, and is deaf for good once descriptors have run out; here a connection is
// handed to gRPC only when its first bytes are there and look like TLS, so that a silent one costs a
// descriptor and a table entry; afterwards we keep a duplicate of its descriptor, to shut it down when
// Admission says so and to see its end.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include <asio/ip/address.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <grpcpp/server_builder.h>

#include "common/admission.h"
#include "common/loop.h"
#include "common/status.h"

namespace sekisho {

// What counts as one peer: an IPv4 address, or an IPv6 /64.  (Of a Unix socket: an account.)
std::string PeerOf(const asio::ip::address& address);

// "192.0.2.7:40000" of gRPC's "ipv4:192.0.2.7:40000" and "ipv6:%5B2001:db8::7%5D:40000".
std::string EndpointText(const std::string& grpc_peer);

class Acceptor {
 public:
  Acceptor(Loop& loop, Admission::Limits limits, bool expect_tls = true);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // "ADDRESS:PORT", numeric, "[::]:2119" for both families; or "unix:PATH", where a connection counts as
  // finished as soon as it says something: whoever it is, the kernel has told us the account.
  // A TCP connection ends when its peer has not acknowledged, or not read, what it was sent for 20 s: gRPC, which would
  // see to that on a port of its own, cannot even ping once a link that was cut takes no more.
  absl::Status Listen(const std::string& address);
  uint16_t port() const;

  // From here on, connections go to `server`, which must not outlive us.
  void Run(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server);

  // A call on the connection of this peer (as gRPC writes it) was authenticated.  False: its address has all
  // the connections that one may have.
  bool Finish(const std::string& grpc_peer);

  // Calls on it were refused, and no other was authenticated: it has nothing more to say.
  void HangUp(const std::string& grpc_peer);

  // No more connections; those open stay.
  void Stop();

  const Admission& admission() const { return admission_; }

 private:
  absl::Status ListenTcp(const std::string& address);
  absl::Status ListenUnix(const std::string& path);
  struct Arrival {
    std::string peer;
    std::string endpoint;
  };
  Arrival NameOf(int fd) const;

  struct Connection {
    int fd = -1;
    std::string endpoint;
    bool is_handed_over = false;
  };

  void WaitForArrival();
  bool Accept();
  void WaitForEvents();
  void OnEvent(Admission::Id id, uint32_t events);
  void HandOver(Admission::Id id);
  void Drop(Admission::Id id);  // shuts it down, and forgets it
  void Close(Admission::Id id);
  void ArmDeadline();

  Loop& loop_;
  const bool expect_tls_;
  Admission admission_;
  bool is_unix_ = false;
  asio::posix::stream_descriptor listener_;
  asio::posix::stream_descriptor events_;  // an epoll set of our own: no wake-up for ordinary data
  asio::steady_timer deadline_;
  asio::steady_timer retry_;
  bool is_deadline_armed_ = false;
  bool is_out_of_descriptors_ = false;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  std::unordered_map<Admission::Id, Connection> connections_;
  std::unordered_map<std::string, Admission::Id> by_endpoint_;
};

}  // namespace sekisho
