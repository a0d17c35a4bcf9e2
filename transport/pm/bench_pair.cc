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

namespace {

int OpenTcp() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
  return fd;
}

}  // namespace

// What is accepted inherits its options.
int ListenTcp(int backlog) {
  const int fd = OpenTcp();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, backlog) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

int ConnectTcpTo(int listener) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  auto* at = reinterpret_cast<sockaddr*>(&address);
  const int fd = OpenTcp();
  if (getsockname(listener, at, &length) != 0 || connect(fd, at, sizeof address) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

TcpPair ConnectTcp() {
  const int listener = ListenTcp(1);
  if (listener < 0) return {};
  TcpPair pair;
  pair.a = ConnectTcpTo(listener);
  if (pair.a >= 0) pair.b = accept(listener, nullptr, nullptr);
  close(listener);
  return pair;
}

}  // namespace sekisho::pm
