// SPDX-License-Identifier: Apache-2.0
// What every measurement on one host begins with: a node's configuration, two connected TCP
// sockets.
#pragma once

#include "transport/pm/types.h"

namespace sekisho::pm {

// Of a node that was started now.
Config BenchConfig(NodeId node);

// Sockets of TCP on the loopback, NODELAY and cubic; the caller's.  -1 with errno.
int ListenTcp(int backlog);
int ConnectTcpTo(int listener);

struct TcpPair {
  int a = -1, b = -1;
};

TcpPair ConnectTcp();

}  // namespace sekisho::pm
