// SPDX-License-Identifier: Apache-2.0
#include "client/site/reach.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/identity/reason_of.h"
#include "common/refusal.h"

namespace sekisho::client {
namespace {

constexpr int kConnectTimeMs = 5000;
// What is not acknowledged for so long never will be; a gatekeeper that reads nothing for so long is no better.  gRPC's
// ping does not tell of it: it waits behind what a cut link no longer takes, and gRPC, which would set this on a socket of
// its own, does not see ours.
constexpr unsigned kSilenceMs = 20'000;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses Find(const Contact& contact, int& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  error = getaddrinfo(contact.host.c_str(), std::to_string(contact.port).c_str(), &hints, &found);
  return Addresses(found, &freeaddrinfo);
}

// A connected socket, or -errno.
int ConnectOne(const addrinfo& address, int timeout_ms) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return -errno;
  }
  int error = connect(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd waiting{fd, POLLOUT, 0};
    socklen_t size = sizeof(error);
    if (poll(&waiting, 1, timeout_ms) <= 0) {
      error = ETIMEDOUT;
    } else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
      error = errno;
    }
  }
  if (error != 0) {
    close(fd);
    return -error;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kSilenceMs, sizeof(kSilenceMs));
  return fd;
}

// The first address that answers: a connected socket, or -errno of the last one.
int ConnectAny(const addrinfo* addresses, int timeout_ms) {
  int result = -EHOSTUNREACH;
  for (const addrinfo* address = addresses; address != nullptr && result < 0; address = address->ai_next) {
    result = ConnectOne(*address, timeout_ms);
  }
  return result;
}

std::string NameDetail(const Contact& contact, int error) {
  return fmt::format("{}: {}", contact.host, gai_strerror(error));
}
std::string TcpDetail(const Contact& contact, int error) {
  return fmt::format("{}: {}", contact.Address(), error == ETIMEDOUT ? "no answer" : std::strerror(error));
}

std::string Who(const Target& target) {
  return target.site.empty() ? target.contact.Address()
                             : fmt::format("{} ({})", target.site, target.contact.Address());
}

absl::Status CannotReach(const Target& target, const std::string& step, const std::string& detail,
                         const std::string& remedy) {
  return Refuse(absl::StatusCode::kUnavailable, 12,
                fmt::format("cannot reach the gatekeeper of {}: {}: {}", Who(target), step, detail), remedy);
}

template <typename Function>
Step Timed(Function function) {
  const auto start = std::chrono::steady_clock::now();
  Step step = function();
  step.milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return step;
}

}  // namespace

Step LookUpName(const Contact& contact) {
  return Timed([&]() -> Step {
    int error = 0;
    const Addresses found = Find(contact, error);
    if (error != 0) {
      return {false, NameDetail(contact, error)};
    }
    char text[NI_MAXHOST] = "";
    getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
    return {true, fmt::format("{} is {}", contact.host, text)};
  });
}

Step ConnectTcp(const Contact& contact, int timeout_ms) {
  return Timed([&]() -> Step {
    int error = 0;
    const Addresses found = Find(contact, error);
    if (error != 0) {
      return {false, NameDetail(contact, error)};
    }
    const int fd = ConnectAny(found.get(), timeout_ms);
    if (fd < 0) {
      return {false, TcpDetail(contact, -fd)};
    }
    close(fd);
    return {true, "connected to " + contact.Address()};
  });
}

absl::StatusOr<int> Dial(const Target& target) {
  int error = 0;
  const Addresses found = Find(target.contact, error);
  if (error != 0) {
    return CannotReach(target, "name", NameDetail(target.contact, error),
                       "check the host's name in the contact or in sites.json");
  }
  const int fd = ConnectAny(found.get(), kConnectTimeMs);
  if (fd < 0) {
    return CannotReach(target, "TCP", TcpDetail(target.contact, -fd),
                       "the site may be down: try again later, or ask its administrator");
  }
  return fd;
}

absl::Status ExplainHandshake(const Target& target, const absl::Status& handshake) {
  if (handshake.code() == absl::StatusCode::kUnavailable) {
    return CannotReach(target, "TLS", Message(handshake), "check your proxy: sekisho proxy info");
  }
  const bool has_ended = identity::ReasonOf(handshake) == identity::Reason::kCertificateExpired;
  return Refuse(absl::StatusCode::kUnauthenticated, 7,
                fmt::format("the gatekeeper of {} is not who it should be: {}", Who(target),
                            Message(handshake)),
                has_ended ? "tell the site's administrator: its host certificate is to be renewed"
                          : "check the contact and your CA directory (X509_CERT_DIR): sekisho doctor");
}

}  // namespace sekisho::client
