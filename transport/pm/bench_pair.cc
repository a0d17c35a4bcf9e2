// SPDX-License-Identifier: Apache-2.0
// What every measurement begins with.
#include "transport/pm/bench_pair.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/pm/bench_network.h"
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

int OpenTcp(const char* congestion) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // Not every user may choose; then what is used anyway may be the one.
  (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion,
                   static_cast<socklen_t>(strlen(congestion)));
  char used[16] = {};
  socklen_t length = sizeof used - 1;
  (void)getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, used, &length);
  if (strcmp(used, congestion) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

// What is accepted inherits its options.
int ListenTcp(int backlog, const char* congestion) {
  const AtHostOf host(1);
  const int fd = OpenTcp(congestion);
  const sockaddr_in address = ToIpv4(AddressAt(1));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, backlog) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

int ConnectTcpTo(int listener, const char* congestion) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  auto* at = reinterpret_cast<sockaddr*>(&address);
  const int fd = OpenTcp(congestion);
  if (getsockname(listener, at, &length) != 0 || connect(fd, at, sizeof address) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

TcpPair ConnectTcp(const char* congestion) {
  const int listener = ListenTcp(1, congestion);
  if (listener < 0) return {};
  TcpPair pair;
  pair.a = ConnectTcpTo(listener, congestion);
  if (pair.a >= 0) pair.b = accept(listener, nullptr, nullptr);
  close(listener);
  return pair;
}

}  // namespace sekisho::pm
