// SPDX-License-Identifier: Apache-2.0
// Many nodes in one process behind one socket: as cheap as they can be, as each of them would be on
// a host of its own, and only the node that has them is measured.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <memory>
#include <vector>

#include "transport/pm/wire.h"

namespace sekisho::pm {

class BenchNodes {
 public:
  // Nodes 1 to `count`, each with `config` but for its number, at their host; node 0 is at `hub`.
  BenchNodes(const Config& config, int count, const Address& hub);
  ~BenchNodes();
  BenchNodes(const BenchNodes&) = delete;
  BenchNodes& operator=(const BenchNodes&) = delete;

  // Each has an IP address of its own, as if it were alone.
  static Address AddressOf(NodeId node, std::uint16_t port);
  std::uint16_t port() const { return port_; }
  int fd() const { return socket_.fd(); }

  // `turn(endpoint)` for each that something came for, then sends.
  template <typename Turn>
  void Progress(Turn turn) {
    while (Receive()) {
      for (const NodeId node : touched_) turn(nodes_[node]);
      for (const NodeId node : touched_) Send(nodes_[node]);
      SendRest();
    }
  }
  // Deadlines that have passed; when the next one is.
  Nanos OnTimers(Nanos now);

 private:
  static constexpr std::size_t kAtOnce = 64;  // datagrams
  struct Batch {
    std::array<std::array<std::uint8_t, 2048>, kAtOnce> bytes;
    std::array<sockaddr_in, kAtOnce> addresses;
    std::array<iovec, kAtOnce> pieces;
    std::array<mmsghdr, kAtOnce> headers;
    std::size_t count = 0;

    std::span<std::uint8_t> room(std::size_t i) { return bytes[i]; }
    void Describe(std::size_t i, std::size_t size);
  };

  bool Receive();
  void Send(Endpoint& endpoint);
  void SendRest();

  UdpSocket socket_;
  std::uint16_t port_ = 0;
  MutableBytes memory_;
  std::vector<Endpoint> nodes_;  // the first is nobody
  std::vector<NodeId> touched_;
  std::unique_ptr<Batch> in_, out_;
};

}  // namespace sekisho::pm
