// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/net.h"

#include <cerrno>
#include <cstring>
#include <ctime>

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/rand.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/identity/openssl.h"

namespace sekisho::nxproxy {
namespace {

constexpr int kBacklog = 4096;

int Family(const wire::Address& address) { return address.is_v4() ? AF_INET : AF_INET6; }

}  // namespace

Descriptor ListenOn(const wire::Address& address) {
  Descriptor fd(socket(Family(address), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_storage raw;
  const socklen_t length = ToSocket(address, raw);
  const int one = 1;
  if (fd.is_open()) {
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  }
  if (!fd.is_open() || bind(fd.get(), reinterpret_cast<sockaddr*>(&raw), length) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

Descriptor BeginConnect(const wire::Address& address) {
  Descriptor fd(socket(Family(address), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_storage raw;
  const socklen_t length = ToSocket(address, raw);
  if (fd.is_open() && connect(fd.get(), reinterpret_cast<sockaddr*>(&raw), length) != 0 &&
      errno != EINPROGRESS) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

int ConnectError(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

void Reset(Descriptor socket) {
  if (socket.is_open()) {
    const linger now{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
}

wire::Address LocalAddress(int fd) {
  sockaddr_storage raw{};
  socklen_t length = sizeof raw;
  getsockname(fd, reinterpret_cast<sockaddr*>(&raw), &length);
  return wire::FromSocket(reinterpret_cast<sockaddr*>(&raw)).value_or(wire::Address{});
}

wire::Address PeerAddress(int fd) {
  sockaddr_storage raw{};
  socklen_t length = sizeof raw;
  getpeername(fd, reinterpret_cast<sockaddr*>(&raw), &length);
  return wire::FromSocket(reinterpret_cast<sockaddr*>(&raw)).value_or(wire::Address{});
}

bool IsQuiet(int fd) {
  char byte;
  return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

std::vector<wire::Address> OwnAddresses() {
  std::vector<wire::Address> out;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) == 0) {
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr != nullptr) {
        if (const auto address = wire::FromSocket(one->ifa_addr)) {
          out.push_back(*address);
        }
      }
    }
    freeifaddrs(list);
  }
  return out;
}

absl::StatusOr<wire::Address> Resolve(const std::string& host_port) {
  const auto parts = wire::ParseHostPort(host_port);
  if (!parts) {
    return absl::InvalidArgumentError(fmt::format("expected HOST:PORT, got '{}'", host_port));
  }
  const addrinfo hints{.ai_flags = AI_ADDRCONFIG, .ai_socktype = SOCK_STREAM};
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(parts->host.c_str(), nullptr, &hints, &list); error != 0) {
    return absl::UnavailableError(fmt::format("{}: {}", parts->host, gai_strerror(error)));
  }
  const auto address = wire::FromSocket(list->ai_addr);
  freeaddrinfo(list);
  if (!address) {
    return absl::UnavailableError(fmt::format("{}: no address", parts->host));
  }
  wire::Address out = *address;
  out.port = parts->port;
  return out;
}

std::string RandomBytes(size_t count) {
  std::string out(count, '\0');
  CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(count)) == 1);
  return out;
}

uint64_t RandomId() {
  uint64_t id = 0;
  while (id == 0) {
    std::memcpy(&id, RandomBytes(sizeof id).data(), sizeof id);
  }
  return id;
}

std::string Sha256Of(const std::string& bytes) { return identity::Sha256Hex(bytes); }

int64_t NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t WallSeconds() { return time(nullptr); }

}  // namespace sekisho::nxproxy
