// SPDX-License-Identifier: Apache-2.0
// What every measurement on one host begins with: a node's configuration, two connected TCP
// sockets.
#pragma once

#include "transport/pm/types.h"

namespace sekisho::pm {

// Of a node that was started now.
Config BenchConfig(NodeId node);

struct TcpPair {
  int a = -1, b = -1;
};

// On the loopback, NODELAY and cubic; the caller's.  -1 with errno.
TcpPair ConnectTcp();

}  // namespace sekisho::pm
