// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/tcp.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/stat.h>

namespace sekisho::nxproxy::client {
namespace {

int Option(int fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  return getsockopt(fd, level, name, &value, &length) == 0 ? value : -1;
}

}  // namespace

int TcpFamily(int fd) {
  const int family = Option(fd, SOL_SOCKET, SO_DOMAIN);
  const bool is_tcp = (family == AF_INET || family == AF_INET6) &&
                      Option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP;
  return is_tcp ? family : 0;
}

uint32_t FlagsOf(int fd, int family) {
  if (family != AF_INET6) {
    return 0;
  }
  return Option(fd, IPPROTO_IPV6, IPV6_V6ONLY) == 1 ? kIsV6 | kIsV6Only : kIsV6;
}

uint64_t InodeOf(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? status.st_ino : 0;
}

socklen_t Fill(const Address& address, int family, sockaddr_storage& out) {
  if (family != AF_INET6 || !address.is_v4()) {
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

void CopyOut(const sockaddr_storage& from, socklen_t bytes, sockaddr* address, socklen_t* length) {
  if (address == nullptr || length == nullptr) {
    return;
  }
  std::memcpy(address, &from, std::min(*length, bytes));
  *length = bytes;
}

void CopyOptions(int from, int to) {
  constexpr int kOptions[][2] = {{SOL_SOCKET, SO_KEEPALIVE}, {SOL_SOCKET, SO_OOBINLINE},
                                 {SOL_SOCKET, SO_LINGER},    {SOL_SOCKET, SO_RCVTIMEO},
                                 {SOL_SOCKET, SO_SNDTIMEO},  {IPPROTO_TCP, TCP_NODELAY}};
  for (const auto& [level, name] : kOptions) {
    alignas(8) char value[32];
    socklen_t length = sizeof value;
    if (getsockopt(from, level, name, value, &length) == 0) {
      setsockopt(to, level, name, value, length);
    }
  }
}

int WaitForConnection(int fd) {
  pollfd wanted = {fd, POLLOUT, 0};
  if (poll(&wanted, 1, -1) < 0) {
    return -1;
  }
  const int error = Option(fd, SOL_SOCKET, SO_ERROR);
  if (error == 0) {
    return 0;
  }
  errno = error;
  return -1;
}

}  // namespace sekisho::nxproxy::client
