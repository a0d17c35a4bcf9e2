// SPDX-License-Identifier: Apache-2.0
// n endpoints on a simulated network, for tests that say themselves what the applications do.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "transport/pm/endpoint.h"
#include "transport/pm/sim/network.h"

namespace sekisho::pm::sim {

class Cluster {
 public:
  // `adjust` may change the configuration of each node before it starts.
  explicit Cluster(
      std::uint32_t nodes, const std::function<void(Config&)>& adjust = [](Config&) {},
      std::uint64_t seed = 1);

  Endpoint& operator[](std::size_t node) { return *nodes_[node].endpoint; }
  const Endpoint& operator[](std::size_t node) const { return *nodes_[node].endpoint; }
  Network& network() { return network_; }
  Nanos now() const { return network_.now() + kSecond; }

  // Called when a node was active: read, write.  Without it messages are read and released at once.
  std::function<void(std::uint32_t node)> on_turn;
  // Called for every datagram that leaves; false drops it.
  std::function<bool(std::uint32_t from, std::uint32_t to, Bytes datagram)> on_datagram;
  std::size_t interface_mtu = kDatagramMax;  // of every node: what is longer is refused

  // Until `done` says so or `limit` of virtual time passed.  Whether done.
  bool Run(
      Nanos limit, const std::function<bool()>& done = [] { return false; });
  // Makes calls of the application leave as datagrams.
  void Pump(std::uint32_t node);
  // The process dies and starts again, with a larger incarnation.
  void Restart(std::uint32_t node);
  // Starts it with a cipher, which outlives the cluster's last datagram.
  void Encrypt(std::uint32_t node, Cipher* cipher);
  // As sekisho-pmd does it: the state of this moment, and later the node on another host.
  std::vector<std::uint8_t> Save(std::uint32_t node);
  void Restore(std::uint32_t node, const std::vector<std::uint8_t>& saved);
  void SendText(std::uint32_t from, std::uint32_t to, ChannelId channel, std::size_t size);
  void Deliver(std::uint32_t from, std::uint32_t to, std::vector<std::uint8_t> datagram);

  std::uint64_t delivered(std::size_t node) const { return nodes_[node].delivered; }
  std::uint64_t delivered_bytes(std::size_t node) const { return nodes_[node].delivered_bytes; }
  static Address AddressOf(std::uint32_t node);

 private:
  struct Node {
    Config config;
    Cipher* cipher = nullptr;
    std::vector<std::uint8_t> memory;
    std::unique_ptr<Endpoint> endpoint;
    std::uint64_t timer = 0;
    Nanos timer_at = kNever;
    std::uint64_t delivered = 0;
    std::uint64_t delivered_bytes = 0;
  };

  void Start(std::uint32_t id);
  void Turn(std::uint32_t id);

  Network network_;
  std::vector<Node> nodes_;
  std::vector<std::uint8_t> room_ =
      std::vector<std::uint8_t>(kDatagramMax);  // of the next datagram
};

}  // namespace sekisho::pm::sim
