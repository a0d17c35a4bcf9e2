// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/responder.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "topology/probe/errors.h"

namespace sekisho::topology {
namespace {

constexpr size_t kMostConnections = 64;
constexpr size_t kMostBytes = 64 * 1024;  // a connection may ask for
constexpr std::chrono::seconds kIdle{5};

// In a time that does not tell how much of it is right.
bool IsSame(const char* shown, const ProbeKey& key) {
  uint8_t differences = 0;
  for (size_t i = 0; i < key.size(); ++i) {
    differences |= static_cast<uint8_t>(static_cast<uint8_t>(shown[i]) ^ key[i]);
  }
  return differences == 0;
}

// The kernel answers the next ping itself, without waiting for what we will send: it forgets that
// whenever something is sent.
void AcknowledgeAtOnce(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

}  // namespace

Responder::~Responder() {
  if (listener_ >= 0) {
    close(listener_);
  }
  for (const Connection& connection : connections_) {
    close(connection.socket);
  }
  for (const Visitor& visitor : visitors_) {
    close(visitor.socket);
  }
}

absl::Status Responder::Listen(const std::string& address, uint16_t port) {
  sockaddr_in at{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
  if (inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1) {
    return errors::CannotListen(address, port, "not an IPv4 address");
  }
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  socklen_t size = sizeof at;
  if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 ||
      listen(listener_, 64) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    return errors::CannotListen(address, port, std::strerror(errno));
  }
  port_ = ntohs(at.sin_port);
  return absl::OkStatus();
}

void Responder::SetKey(const ProbeKey& key) {
  key_ = key;
  has_key_ = true;
}

void Responder::Watch(std::vector<pollfd>& waits) const {
  const bool has_room = connections_.size() < kMostConnections;
  waits.push_back({.fd = has_room ? listener_ : -1, .events = POLLIN, .revents = 0});
  for (const Connection& connection : connections_) {
    waits.push_back({.fd = connection.socket, .events = POLLIN, .revents = 0});
  }
}

// Judged only once it is whole: else it could be found byte by byte.
Responder::Next Responder::ReadHello(Connection& connection) const {
  const ssize_t count = read(connection.socket, connection.shown.data() + connection.shown_size,
                             kHello - connection.shown_size);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return Next::kKeep;
  }
  if (count <= 0) {
    return Next::kClose;
  }
  connection.shown_size += static_cast<size_t>(count);
  if (connection.shown_size < kHello) {
    return Next::kKeep;
  }
  if (!has_key_ || !IsSame(connection.shown.data(), key_)) {
    return Next::kClose;
  }
  switch (static_cast<Wanted>(connection.shown.back())) {
    case Wanted::kEcho:
      return Next::kKeep;
    case Wanted::kSink:
    case Wanted::kFile:
      return Next::kHandOn;
  }
  return Next::kClose;
}

Responder::Next Responder::Read(Connection& connection) const {
  if (connection.shown_size < kHello) {
    return ReadHello(connection);
  }
  char bytes[512];
  for (;;) {
    const ssize_t count = read(connection.socket, bytes, sizeof bytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      return Next::kKeep;
    }
    if (count <= 0) {
      return Next::kClose;
    }
    connection.bytes += static_cast<size_t>(count);
    connection.last = Clock::now();
    // A peer that does not read is none that measures.
    if (connection.bytes > kMostBytes ||
        send(connection.socket, bytes, static_cast<size_t>(count), MSG_NOSIGNAL) != count) {
      return Next::kClose;
    }
    AcknowledgeAtOnce(connection.socket);
  }
}

void Responder::Accept() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket >= 0) {
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connections_.push_back({.socket = socket, .last = Clock::now()});
  } else if (errno != EAGAIN && errno != ECONNABORTED) {
    poll(nullptr, 0, 10);  // out of descriptors: let some connection end
  }
}

void Responder::Handle(std::span<const pollfd> waits) {
  const Clock::time_point now = Clock::now();
  std::vector<Connection> kept;
  for (size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = connections_[i];
    Next next = now - connection.last <= kIdle ? Next::kKeep : Next::kClose;
    if (next == Next::kKeep && waits[i + 1].revents != 0) {
      next = Read(connection);
    }
    if (next == Next::kKeep) {
      kept.push_back(connection);
    } else if (next == Next::kHandOn) {
      visitors_.push_back({connection.socket, static_cast<Wanted>(connection.shown.back())});
    } else {
      close(connection.socket);
    }
  }
  connections_ = std::move(kept);
  if (waits[0].revents != 0) {
    Accept();
  }
}

std::vector<Responder::Visitor> Responder::TakeVisitors() { return std::exchange(visitors_, {}); }

}  // namespace sekisho::topology
