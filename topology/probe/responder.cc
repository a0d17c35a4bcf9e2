// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/responder.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "topology/probe/errors.h"

namespace sekisho::topology {
namespace {

constexpr size_t kMostConnections = 64;
constexpr size_t kMostBytes = 64 * 1024;  // a connection may ask for
constexpr int kIdleMs = 5000;

using Clock = std::chrono::steady_clock;

struct Connection {
  int socket;
  size_t bytes = 0;
  Clock::time_point last = Clock::now();
};

// False: it is over.
bool Echo(Connection& connection) {
  char bytes[512];
  for (;;) {
    const ssize_t count = read(connection.socket, bytes, sizeof bytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      return true;
    }
    if (count <= 0) {
      return false;
    }
    connection.bytes += static_cast<size_t>(count);
    connection.last = Clock::now();
    // A peer that does not read is none that measures.
    if (connection.bytes > kMostBytes ||
        send(connection.socket, bytes, static_cast<size_t>(count), MSG_NOSIGNAL) != count) {
      return false;
    }
  }
}

}  // namespace

Responder::~Responder() {
  for (const int file : {listener_, wake_[0], wake_[1]}) {
    if (file >= 0) {
      close(file);
    }
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
      listen(listener_, 64) != 0 || pipe2(wake_, O_NONBLOCK | O_CLOEXEC) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    return errors::CannotListen(address, port, std::strerror(errno));
  }
  port_ = ntohs(at.sin_port);
  return absl::OkStatus();
}

void Responder::Stop() {
  const char byte = 0;
  [[maybe_unused]] const ssize_t count = write(wake_[1], &byte, 1);
}

void Responder::Run() {
  std::vector<Connection> connections;
  for (;;) {
    std::vector<pollfd> waits{{.fd = wake_[0], .events = POLLIN, .revents = 0},
                              {.fd = connections.size() < kMostConnections ? listener_ : -1,
                               .events = POLLIN,
                               .revents = 0}};
    for (const Connection& connection : connections) {
      waits.push_back({.fd = connection.socket, .events = POLLIN, .revents = 0});
    }
    poll(waits.data(), waits.size(), kIdleMs);
    if (waits[0].revents != 0) {
      break;
    }
    const Clock::time_point now = Clock::now();
    std::vector<Connection> kept;
    for (size_t i = 0; i < connections.size(); ++i) {
      Connection& connection = connections[i];
      const bool is_idle = now - connection.last > std::chrono::milliseconds(kIdleMs);
      const bool is_open = waits[i + 2].revents == 0 ? !is_idle : Echo(connection);
      if (is_open) {
        kept.push_back(connection);
      } else {
        close(connection.socket);
      }
    }
    connections = std::move(kept);
    if (waits[1].revents != 0) {
      const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (socket >= 0) {
        const int on = 1;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        connections.push_back({.socket = socket});
      } else if (errno != EAGAIN && errno != ECONNABORTED) {
        poll(nullptr, 0, 10);  // out of descriptors: let some connection end
      }
    }
  }
  for (const Connection& connection : connections) {
    close(connection.socket);
  }
}

}  // namespace sekisho::topology
