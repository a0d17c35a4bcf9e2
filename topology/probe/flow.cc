// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/flow.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "topology/probe/tcp_info.h"

namespace sekisho::topology {
namespace {

// Longer than the second after which a lost SYN is repeated: queues may be full of what the flows
// before have left.
constexpr std::chrono::milliseconds kConnectPatience{1500};
constexpr std::chrono::seconds kPatience{5};    // for what was sent to arrive
constexpr std::chrono::seconds kGoPatience{4};  // less than that: the other end waits, too
constexpr size_t kChunk = 64 * 1024;
constexpr int kMostUnsent = 64 * 1024;  // else a slow way goes on long after the end
constexpr size_t kLongestReply = 64;

const char kNothing[kChunk] = {};

// How long the flow lasts, 4 bytes, least first, before all that is sent.  Senders of earlier said
// nothing, so what they send begins with zeros; receivers of earlier count these bytes like any.
std::array<char, SinkTask::kHead> PrintHead(std::chrono::milliseconds duration) {
  std::array<char, SinkTask::kHead> head;
  for (size_t i = 0; i < head.size(); ++i) {
    head[i] = static_cast<char>(duration.count() >> (8 * i));
  }
  return head;
}

std::chrono::milliseconds ParseHead(const std::array<char, SinkTask::kHead>& head) {
  uint32_t ms = 0;
  for (size_t i = 0; i < head.size(); ++i) {
    ms |= static_cast<uint32_t>(static_cast<uint8_t>(head[i])) << (8 * i);
  }
  return std::chrono::milliseconds(ms);
}

}  // namespace

FlowRun::FlowRun(const ProbeTarget& target, const ProbeKey& key, std::chrono::milliseconds duration,
                 Start start)
    : key_(key), duration_(duration), start_(start), deadline_(Clock::now() + kConnectPatience) {
  if (!peer_.Dial(target)) {
    state_ = State::kDone;
  }
}

pollfd FlowRun::Watch() const {
  const short events = state_ == State::kListening || state_ == State::kWaiting ? POLLIN : POLLOUT;
  return {.fd = peer_.socket(), .events = events, .revents = 0};
}

void FlowRun::End(std::string result) {
  result_ = std::move(result);
  state_ = State::kDone;
}

void FlowRun::Go() {
  const auto head = PrintHead(duration_);
  if (!peer_.Send(head.data(), head.size())) {
    return End("0 0");
  }
  setsockopt(peer_.socket(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kMostUnsent, sizeof kMostUnsent);
  // Until each has its share of the way.
  const bool is_counted_here = start_ == Start::kWhenTold && !peer_.IsRelayed();
  state_ = is_counted_here ? State::kBeginning : State::kSending;
  deadline_ = Clock::now() + (is_counted_here ? duration_ * 2 / 5 : duration_);
}

void FlowRun::Handle(short events) {
  if (events == 0 || IsDone()) {
    return;
  }
  if (state_ == State::kConnecting) {
    if (!peer_.Greet(key_, Wanted::kSink)) {
      return End("0 0");
    }
    if (start_ == Start::kWhenTold) {
      state_ = State::kWaiting;
      deadline_ = Clock::now() + kGoPatience;
      return;
    }
    Go();
  }
  if (state_ == State::kBeginning || state_ == State::kSending) {
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
  if (state_ == State::kBeginning) {
    arrived_ = AcknowledgedBytes(peer_.socket());
    looked_at_ = now = Clock::now();
    state_ = State::kSending;
    deadline_ = now + duration_ * 3 / 5;
    return;
  }
  if (state_ != State::kSending) {
    return End("0 0");
  }
  if (const auto arrived = AcknowledgedBytes(peer_.socket()); arrived_ && arrived) {
    const auto lasted = Clock::now() - looked_at_;
    // What is still on its way would be in that of those that come after us.
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(peer_.socket(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    peer_.Close();
    return End(fmt::format("{} {}", *arrived - *arrived_,
                           std::chrono::duration_cast<std::chrono::microseconds>(lasted).count()));
  }
  shutdown(peer_.socket(), SHUT_WR);
  state_ = State::kListening;
  deadline_ = now + kPatience;
}

SinkTask::SinkTask(int socket) : socket_(socket), deadline_(Clock::now() + kPatience) {}

SinkTask::~SinkTask() { close(socket_); }

// What still arrives when all have stopped to send got more than its share of the way.
void SinkTask::Count(std::span<const char> bytes, Clock::time_point now) {
  const bool is_first = head_size_ == 0;
  for (size_t i = 0; i < bytes.size() && head_size_ < kHead; ++i) {
    head_[head_size_++] = bytes[i];
    duration_ = head_size_ == kHead ? ParseHead(head_) : std::chrono::milliseconds(0);
  }
  if (is_first) {
    first_ = last_ = now;
  } else if (duration_.count() == 0 || now - first_ <= duration_) {
    bytes_ += bytes.size();
    last_ = now;
  }
}

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
    Count({bytes, static_cast<size_t>(count)}, now);
    deadline_ = now + kPatience;
    return;
  }
  if (count == 0) {
    // One that got nothing through for a while was slow, however fast it was before that.
    const Clock::duration lasted = duration_.count() == 0
                                       ? last_ - first_
                                       : std::min<Clock::duration>(duration_, now - first_);
    const std::string reply = fmt::format(
        "{} {}\n", bytes_, std::chrono::duration_cast<std::chrono::microseconds>(lasted).count());
    [[maybe_unused]] const ssize_t said = send(socket_, reply.data(), reply.size(), MSG_NOSIGNAL);
  }
  is_done_ = true;
}

}  // namespace sekisho::topology
