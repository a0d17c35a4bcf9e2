// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/sockets.h"

#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

socklen_t ToFamily(const wire::Address& address, bool is_v6, sockaddr_storage& out) {
  if (!is_v6 || !address.is_v4()) {
    return wire::ToSocket(address, out);
  }
  sockaddr_in6 mapped{};
  mapped.sin6_family = AF_INET6;
  mapped.sin6_port = htons(address.port);
  std::memcpy(&mapped.sin6_addr, address.ip.data(), address.ip.size());
  std::memset(&out, 0, sizeof out);
  std::memcpy(&out, &mapped, sizeof mapped);
  return sizeof mapped;
}

wire::Address NameOf(int fd, int (*call)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage name;
  socklen_t length = sizeof name;
  if (call(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return {};
  }
  return wire::FromSocket(reinterpret_cast<sockaddr*>(&name)).value_or(wire::Address{});
}

}  // namespace

int DialWith(const wire::Address& to, bool is_v6, const std::string& first) {
  sockaddr_storage address;
  const socklen_t length = ToFamily(to, is_v6, address);
  const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return -1;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);  // a relay that has vanished: 60 s
  for (const auto [name, value] :
       {std::pair(TCP_KEEPIDLE, 30), {TCP_KEEPINTVL, 10}, {TCP_KEEPCNT, 3}}) {
    setsockopt(fd, IPPROTO_TCP, name, &value, sizeof value);
  }
  if (first.empty()) {
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 || errno == EINPROGRESS) {
      return fd;
    }
  } else if (setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof on) == 0 &&
             sendto(fd, first.data(), first.size(), MSG_FASTOPEN | MSG_NOSIGNAL,
                    reinterpret_cast<sockaddr*>(&address),
                    length) == static_cast<ssize_t>(first.size())) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int ErrorOf(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

void Reset(int fd) {
  const linger now = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(fd);
}

wire::Address LocalOf(int fd) { return NameOf(fd, getsockname); }
wire::Address RemoteOf(int fd) { return NameOf(fd, getpeername); }

}  // namespace sekisho::nxproxy::client
