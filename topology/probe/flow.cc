// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/flow.h"

#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sekisho::topology {
namespace {

constexpr std::chrono::milliseconds kConnectPatience{900};
constexpr std::chrono::seconds kPatience{5};  // for what was sent to arrive
constexpr size_t kChunk = 64 * 1024;
constexpr int kMostUnsent = 64 * 1024;  // else a slow way goes on long after the end
constexpr size_t kLongestReply = 64;

const char kNothing[kChunk] = {};

}  // namespace

FlowRun::FlowRun(const ProbeTarget& target, const ProbeKey& key, std::chrono::milliseconds duration)
    : key_(key), duration_(duration), deadline_(Clock::now() + kConnectPatience) {
  if (!peer_.Dial(target)) {
    state_ = State::kDone;
  }
}

pollfd FlowRun::Watch() const {
  const short events = state_ == State::kListening ? POLLIN : POLLOUT;
  return {.fd = peer_.socket(), .events = events, .revents = 0};
}

void FlowRun::End(std::string result) {
  result_ = std::move(result);
  state_ = State::kDone;
}

void FlowRun::Handle(short events) {
  if (events == 0 || IsDone()) {
    return;
  }
  if (state_ == State::kConnecting) {
    if (!peer_.Greet(key_, Wanted::kSink)) {
      return End("0 0");
    }
    setsockopt(peer_.socket(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMostUnsent, sizeof kMostUnsent);
    state_ = State::kSending;
    deadline_ = Clock::now() + duration_;
  }
  if (state_ == State::kSending) {
    const ssize_t sent = send(peer_.socket(), kNothing, sizeof kNothing, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      End("0 0");
    }
    return;
  }
  char bytes[kLongestReply];
  const ssize_t count = recv(peer_.socket(), bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  reply_.append(bytes, count > 0 ? static_cast<size_t>(count) : 0);
  if (const size_t end = reply_.find('\n'); end != std::string::npos) {
    End(reply_.substr(0, end));
  } else if (count <= 0 || reply_.size() > kLongestReply) {
    End("0 0");
  }
}

void FlowRun::Expire(Clock::time_point now) {
  if (now < deadline_ || IsDone()) {
    return;
  }
  if (state_ != State::kSending) {
    return End("0 0");
  }
  shutdown(peer_.socket(), SHUT_WR);
  state_ = State::kListening;
  deadline_ = now + kPatience;
}

SinkTask::SinkTask(int socket) : socket_(socket), deadline_(Clock::now() + kPatience) {}

SinkTask::~SinkTask() { close(socket_); }

void SinkTask::Handle(short events) {
  if (events == 0 || is_done_) {
    return;
  }
  static char bytes[kChunk];
  const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  const Clock::time_point now = Clock::now();
  if (count > 0) {
    bytes_ += has_begun_ ? static_cast<uint64_t>(count) : 0;
    first_ = has_begun_ ? first_ : now;
    has_begun_ = true;
    last_ = now;
    deadline_ = now + kPatience;
    return;
  }
  if (count == 0) {
    const std::string reply =
        fmt::format("{} {}\n", bytes_,
                    std::chrono::duration_cast<std::chrono::microseconds>(last_ - first_).count());
    [[maybe_unused]] const ssize_t said = send(socket_, reply.data(), reply.size(), MSG_NOSIGNAL);
  }
  is_done_ = true;
}

}  // namespace sekisho::topology
