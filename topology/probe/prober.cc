// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/prober.h"

#include <cerrno>
#include <chrono>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "topology/probe/sampler.h"

namespace sekisho::topology {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMessage = 8;

double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// Until then; the time left rounded up, 0 if none.
int MsLeft(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

bool Wait(int socket, short events, Clock::time_point deadline) {
  pollfd wait{.fd = socket, .events = events, .revents = 0};
  int ready = 0;
  do {
    ready = poll(&wait, 1, MsLeft(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

int Connect(const ProbeTarget& target, Clock::time_point deadline) {
  sockaddr_in at{
      .sin_family = AF_INET, .sin_port = htons(target.port), .sin_addr = {}, .sin_zero = {}};
  if (inet_pton(AF_INET, target.address.c_str(), &at.sin_addr) != 1) {
    return -1;
  }
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(file, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int error = 0;
  socklen_t size = sizeof error;
  if (file >= 0 && (connect(file, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 ||
                    (errno == EINPROGRESS && Wait(file, POLLOUT, deadline) &&
                     getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0))) {
    return file;
  }
  if (file >= 0) {
    close(file);
  }
  return -1;
}

// One message there and back; false: it was lost, or something else came back.
bool Ping(int socket, uint64_t number, Clock::time_point deadline, double& rtt_us) {
  char sent[kMessage];
  char back[kMessage];
  std::memcpy(sent, &number, kMessage);
  const Clock::time_point begin = Clock::now();
  if (send(socket, sent, kMessage, MSG_NOSIGNAL) != static_cast<ssize_t>(kMessage)) {
    return false;
  }
  for (size_t got = 0; got < kMessage;) {
    const ssize_t count = recv(socket, back + got, kMessage - got, 0);
    if (count > 0) {
      got += static_cast<size_t>(count);
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR) ||
               !Wait(socket, POLLIN, deadline)) {
      return false;
    }
  }
  rtt_us = MicrosecondsSince(begin);
  return std::memcmp(sent, back, kMessage) == 0;
}

}  // namespace

Answer Probe(const ProbeTarget& target, const Request& request, int timeout_ms) {
  const Clock::time_point begin = Clock::now();
  const Clock::time_point deadline = begin + std::chrono::milliseconds(timeout_ms);
  Sampler sampler(request);
  int socket = -1;
  uint64_t number = 0;
  while (sampler.Next() != Sampler::Step::kEnd) {
    if (sampler.Next() == Sampler::Step::kConnect) {
      if (socket >= 0) {
        close(socket);
      }
      socket = Connect(target, deadline);
      if (socket < 0) {
        sampler.Failed();
      } else {
        sampler.Connected();
      }
      continue;
    }
    double rtt_us = 0;
    if (Ping(socket, ++number, deadline, rtt_us)) {
      sampler.Ponged(rtt_us);
    } else {
      sampler.Failed();
    }
  }
  if (socket >= 0) {
    close(socket);
  }
  return sampler.Result(MicrosecondsSince(begin));
}

}  // namespace sekisho::topology
