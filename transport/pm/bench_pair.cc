// SPDX-License-Identifier: Apache-2.0
// What every measurement on one host begins with.
#include "transport/pm/bench_pair.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/pm/wire.h"

namespace sekisho::pm {

Config BenchConfig(NodeId node) {
  Config config;
  config.node = node;
  config.send_ring = config.receive_ring = DefaultRing(2, 1);
  config.incarnation = static_cast<std::uint64_t>(Wire::Now());
  config.seed = config.incarnation ^ static_cast<std::uint64_t>(getpid());
  return config;
}

TcpPair ConnectTcp() {
  TcpPair pair;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* at = reinterpret_cast<sockaddr*>(&address);
  pair.a = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, at, sizeof address) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, at, &length) != 0 || connect(pair.a, at, sizeof address) != 0) {
    return {};
  }
  pair.b = accept(listener, nullptr, nullptr);
  close(listener);
  const int on = 1;
  for (const int fd : {pair.a, pair.b}) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
  }
  return pair;
}

}  // namespace sekisho::pm
