// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/ping_run.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "topology/probe/tcp_info.h"
#include "topology/text_format.h"

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

void PingRun::Fail() { sampler_.Failed(); }

void PingRun::Connect() {
  state_ = State::kConnecting;
  deadline_ = Clock::now() + kConnectPatience;
  if (!peer_.Dial(target_)) {
    Fail();
  }
}

pollfd PingRun::Watch() const {
  const short events = state_ == State::kConnecting ? POLLOUT : POLLIN;
  return {.fd = peer_.socket(), .events = events, .revents = 0};
}

std::string PingRun::Result() const {
  std::string line = PrintAnswer(answer());
  line.pop_back();  // its end
  return line;
}

Answer PingRun::answer() const {
  Answer answer = sampler_.Result();
  answer.is_relayed = is_relayed_;
  return answer;
}

void PingRun::Ping() {
  ++number_;
  got_ = 0;
  sent_ = Clock::now();
  deadline_ = sent_ + kPingPatience;
  if (!peer_.Send(&number_, sizeof number_)) {
    Fail();
  }
}

// The kernel's clock does not wait for processes that are to run.  But it knows the way to a relay
// only.
double PingRun::RoundTripUs(Clock::time_point now) const {
  const double own = std::chrono::duration<double, std::micro>(now - sent_).count();
  const auto kernel = is_relayed_ ? std::nullopt : ShortestRoundTripUs(peer_.socket());
  return std::min(own, kernel.value_or(own));
}

void PingRun::Handle(short events) {
  if (IsDone() || events == 0) {
    return;
  }
  if (state_ == State::kConnecting) {
    if (!peer_.Greet(key_, Wanted::kEcho)) {
      return Fail();
    }
    is_relayed_ = is_relayed_ || peer_.IsRelayed();
    // The first one wakes whoever accepts there: it is not counted.
    state_ = State::kGreeting;
    return Ping();
  }
  const ssize_t count =
      recv(peer_.socket(), reinterpret_cast<char*>(&back_) + got_, sizeof back_ - got_, 0);
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
    sampler_.Ponged(RoundTripUs(now));
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
