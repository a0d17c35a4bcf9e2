// SPDX-License-Identifier: Apache-2.0
// A network for a measurement alone.
#pragma once

#include <netinet/in.h>

#include "transport/pm/types.h"

namespace sekisho::pm {

// Where the nodes of a measurement are: on one host, or node 0 on one and the others on another,
// with a cable between (a pair of veth).
enum class Path { kLoopback, kCable };

// The network.  False: not allowed; then all are on the host's loopback.
bool EnterPrivateNetwork(Path path, int mtu);
// Random loss of what arrives there; false: there is no nft.
bool SetLoss(double percent);
// A bottleneck on the way to node 0 (on a loopback, on all ways): 20 MB/s, and a queue of 64 KiB,
// or of some packets if they are long, that drops what does not fit.
// False: there is no tc, or the kernel has no ifb or no tbf.
bool SetBottleneck(bool on, int mtu);
// Packets that did not fit since it was set.
unsigned long DroppedAtBottleneck();
// Whether it carries what is longer than its MTU, to be cut by whoever receives it.  Else the
// sender's kernel cuts, and every packet goes alone.
bool SetOffload(bool on);

// Any port of the host of this node; all of them have IPv4.
Address AddressAt(NodeId node);
sockaddr_in ToIpv4(const Address& address);
Address FromIpv4(const sockaddr_in& address);

// While it lives, what this thread makes is made there.
class AtHostOf {
 public:
  explicit AtHostOf(NodeId node);
  ~AtHostOf();
  AtHostOf(const AtHostOf&) = delete;
  AtHostOf& operator=(const AtHostOf&) = delete;

 private:
  const bool away_;
};

}  // namespace sekisho::pm
