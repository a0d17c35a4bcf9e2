// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/ping_run.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sekisho::topology {
namespace {

// Less than the second after which a lost SYN is repeated: what a firewall drops costs no more.
constexpr std::chrono::milliseconds kConnectPatience{900};
constexpr std::chrono::milliseconds kPingPatience{2000};

}  // namespace

PingRun::PingRun(ProbeTarget target, const ProbeKey& key, const Request& request)
    : target_(std::move(target)), key_(key), sampler_(request) {
  Connect();
}

PingRun::~PingRun() {
  if (socket_ >= 0) {
    close(socket_);
  }
}

void PingRun::Fail() { sampler_.Failed(); }

void PingRun::Connect() {
  if (socket_ >= 0) {
    close(socket_);
  }
  state_ = State::kConnecting;
  deadline_ = Clock::now() + kConnectPatience;
  sockaddr_in at{
      .sin_family = AF_INET, .sin_port = htons(target_.port), .sin_addr = {}, .sin_zero = {}};
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (socket_ < 0 || inet_pton(AF_INET, target_.address.c_str(), &at.sin_addr) != 1 ||
      (connect(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 &&
       errno != EINPROGRESS)) {
    Fail();
  }
}

pollfd PingRun::Watch() const {
  const short events = state_ == State::kConnecting ? POLLOUT : POLLIN;
  return {.fd = socket_, .events = events, .revents = 0};
}

bool PingRun::Send(const void* bytes, size_t size) {
  return send(socket_, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

void PingRun::Ping() {
  ++number_;
  got_ = 0;
  sent_ = Clock::now();
  deadline_ = sent_ + kPingPatience;
  if (!Send(&number_, sizeof number_)) {
    Fail();
  }
}

void PingRun::Handle(short events) {
  if (IsDone() || events == 0) {
    return;
  }
  if (state_ == State::kConnecting) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0 ||
        !Send(key_.data(), key_.size())) {
      return Fail();
    }
    // The first one wakes whoever accepts there: it is not counted.
    state_ = State::kGreeting;
    return Ping();
  }
  const ssize_t count =
      recv(socket_, reinterpret_cast<char*>(&back_) + got_, sizeof back_ - got_, 0);
  const Clock::time_point now = Clock::now();
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  got_ += count > 0 ? static_cast<size_t>(count) : 0;
  if (count <= 0 || (got_ == sizeof back_ && back_ != number_)) {
    return Fail();  // it closed, or sends something else
  }
  if (got_ < sizeof back_) {
    return;
  }
  if (state_ == State::kGreeting) {
    state_ = State::kPinging;
    sampler_.Connected();
  } else {
    sampler_.Ponged(std::chrono::duration<double, std::micro>(now - sent_).count());
  }
  if (sampler_.Next() == Sampler::Step::kConnect) {
    Connect();
  } else if (sampler_.Next() == Sampler::Step::kPing) {
    Ping();
  }
}

void PingRun::Expire(Clock::time_point now) {
  if (now >= deadline_ && !IsDone()) {
    Fail();
  }
}

}  // namespace sekisho::topology
