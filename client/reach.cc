// SPDX-License-Identifier: Apache-2.0
#include "client/reach.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/refusal.h"

namespace sekisho::client {
namespace {

constexpr int kConnectTimeMs = 5000;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses Find(const Contact& contact, int& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  error = getaddrinfo(contact.host.c_str(), std::to_string(contact.port).c_str(), &hints, &found);
  return Addresses(found, &freeaddrinfo);
}

// 0, or errno.
int ConnectOne(const addrinfo& address, int timeout_ms) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return errno;
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
  close(fd);
  return error;
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
      return {false, fmt::format("{}: {}", contact.host, gai_strerror(error))};
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
      return {false, fmt::format("{}: {}", contact.host, gai_strerror(error))};
    }
    for (const addrinfo* address = found.get(); address != nullptr; address = address->ai_next) {
      error = ConnectOne(*address, timeout_ms);
      if (error == 0) {
        return {true, "connected to " + contact.Address()};
      }
    }
    return {false, fmt::format("{}: {}", contact.Address(),
                               error == ETIMEDOUT ? "no answer" : std::strerror(error))};
  });
}

absl::Status ExplainUnreachable(const Target& target, const absl::Status& handshake) {
  const std::string who =
      target.site.empty() ? target.contact.Address()
                          : fmt::format("{} ({})", target.site, target.contact.Address());
  if (handshake.code() != absl::StatusCode::kUnavailable && !handshake.ok()) {
    return Refuse(absl::StatusCode::kUnauthenticated, 7,
                  fmt::format("the gatekeeper of {} is not who it should be: {}", who, Message(handshake)),
                  "check the contact and your CA directory (X509_CERT_DIR): sekisho doctor");
  }
  const auto fail = [&](const std::string& step, const std::string& detail, const std::string& remedy) {
    return Refuse(absl::StatusCode::kUnavailable, 12,
                  fmt::format("cannot reach the gatekeeper of {}: {}: {}", who, step, detail), remedy);
  };
  if (const Step name = LookUpName(target.contact); !name.is_ok) {
    return fail("name", name.detail, "check the host's name in the contact or in sites.json");
  }
  if (const Step tcp = ConnectTcp(target.contact, kConnectTimeMs); !tcp.is_ok) {
    return fail("TCP", tcp.detail, "the site may be down: try again later, or ask its administrator");
  }
  return fail("TLS", "the gatekeeper closed the connection during the handshake",
              "check your proxy: sekisho proxy info");
}

}  // namespace sekisho::client
