// SPDX-License-Identifier: Apache-2.0
// What every measurement begins with: a node's configuration, two connected TCP
// sockets.
#pragma once

#include "transport/pm/types.h"

namespace sekisho::pm {

// Of a node that was started now.
Config BenchConfig(NodeId node);

// What the goals compare with.
inline constexpr const char* kCubic = "cubic";

// Sockets of TCP, NODELAY, that listen at the host of node 1 and connect from here; the caller's.
// -1 with errno.
int ListenTcp(int backlog, const char* congestion = kCubic);
int ConnectTcpTo(int listener, const char* congestion = kCubic);

struct TcpPair {
  int a = -1, b = -1;
};

TcpPair ConnectTcp(const char* congestion = kCubic);

}  // namespace sekisho::pm
