// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/pull.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sekisho::topology {
namespace {

// A frame is its length, 4 bytes, least first, and so many bytes of the file; none: "I am here".
constexpr size_t kHead = 4;
constexpr size_t kMostFrame = 128 * 1024;
constexpr size_t kOffset = 8;
constexpr std::chrono::milliseconds kLookAgain{5};  // whether the next host has caught up
constexpr std::chrono::milliseconds kConnectPatience{900};
constexpr std::chrono::milliseconds kSignOfLife{300};
constexpr std::chrono::seconds kPatience{2};
constexpr uint64_t kLeastWindow = 12 * 1024;
constexpr uint64_t kMostWindow = 1 << 30;
constexpr std::chrono::milliseconds kUntilFast{200};

uint64_t Number(const char* bytes, size_t size) {
  uint64_t number = 0;
  for (size_t i = size; i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return number;
}

void Put(uint64_t number, size_t size, char* bytes) {
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(number >> 8 * i);
  }
}

// Bytes come and go in packets that are full only if what is left over waits for the next ones: on
// every hop of a chain else a part of the link goes to headers.
void SetNoDelay(int socket, bool is_on) {
  const int on = is_on ? 1 : 0;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// A link that is crossed both ways at once, as a pipeline does, carries most where the queues are
// short of overflowing: 0.93 of what it has with cubic and 0.91 with reno, 0.86 with bbr, which is
// the default of some hosts.
void SetCongestionControl(int socket) {
  for (const std::string_view name : {"cubic", "reno"}) {
    if (setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                   static_cast<socklen_t>(name.size())) == 0) {
      return;  // the other is the one that everybody may have
    }
  }
}

}  // namespace

PullRun::PullRun(const ProbeTarget& target, const ProbeKey& key, Copy& copy)
    : key_(key), copy_(copy), deadline_(Clock::now() + kConnectPatience) {
  if (!peer_.Dial(target)) {
    End("cannot dial");
  }
}

ProbeTask::Clock::time_point PullRun::deadline() const {
  const Clock::time_point now = Clock::now();
  return IsWaiting(now) ? now + kLookAgain : deadline_;
}

pollfd PullRun::Watch() const {
  const short events = !is_connected_ ? POLLOUT : IsWaiting(Clock::now()) ? 0 : POLLIN;
  return {.fd = peer_.socket(), .events = events, .revents = 0};
}

void PullRun::End(std::string why) {
  why_ = std::move(why);
  is_done_ = true;
  peer_.Close();
}

std::string PullRun::Result() const { return fmt::format("{} {}", copy_.have(), why_); }

// Also of a frame that has not all come yet: the next host may have it already.
void PullRun::TakeFrames() {
  size_t at = 0;
  while (!is_done_ && at < unread_.size()) {
    if (frame_left_ == 0) {
      if (unread_.size() - at < kHead) {
        break;
      }
      frame_left_ = Number(unread_.data() + at, kHead);
      at += kHead;
      if (frame_left_ > kMostFrame) {
        return End("nonsense came");
      }
      continue;
    }
    const size_t count = std::min(frame_left_, unread_.size() - at);
    if (const absl::Status status = copy_.Append(unread_.data() + at, count); !status.ok()) {
      return End(std::string(status.message()));
    }
    at += count;
    frame_left_ -= count;
  }
  unread_.erase(0, at);
  if (copy_.IsWhole()) {
    End({});
  }
}

void PullRun::Handle(short events) {
  if (events == 0 || is_done_) {
    return;
  }
  if (!is_connected_) {
    char offset[kOffset];
    Put(copy_.have(), sizeof offset, offset);
    if (!peer_.Greet(key_, Wanted::kFile) || !peer_.Send(offset, sizeof offset)) {
      return End("cannot connect");
    }
    is_connected_ = true;
    deadline_ = Clock::now() + kPatience;
    if (copy_.IsWhole()) {
      End({});
    }
    return;
  }
  static char bytes[2 * kMostFrame];
  const ssize_t count = recv(peer_.socket(), bytes, sizeof bytes, 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return;
  }
  if (count <= 0) {
    return End("the connection broke");
  }
  deadline_ = Clock::now() + kPatience;
  unread_.append(bytes, static_cast<size_t>(count));
  TakeFrames();
}

// That it is not read for a while stops the host before only once all that TCP keeps here is full, and so long the way
// in is as full as ever.  So less may be on its way, until nobody has had to wait for a while.
void PullRun::SetWindow(Clock::time_point now) {
  int wanted = window_;
  if (IsWaiting(now)) {
    waited_ = now;
    wanted = static_cast<int>(std::clamp(copy_.pace().recent() / 2, kLeastWindow, kMostWindow));
  } else if (now - waited_ > kUntilFast) {
    wanted = 0;
  }
  if (std::abs(wanted - window_) > window_ / 4) {
    window_ = wanted;
    const int told = wanted > 0 ? wanted : static_cast<int>(kMostWindow);
    setsockopt(peer_.socket(), IPPROTO_TCP, TCP_WINDOW_CLAMP, &told, sizeof told);
  }
}

void PullRun::Expire(Clock::time_point now) {
  if (IsWaiting(now)) {
    deadline_ = now + kPatience;  // what it says is not being read
  }
  SetWindow(now);
  if (now >= deadline_ && !is_done_) {
    End(is_connected_ ? "no sign of life" : "cannot connect");
  }
}

ServeTask::ServeTask(int socket, Copy* copy)
    : socket_(socket), copy_(copy), is_done_(copy == nullptr), deadline_(Clock::now() + kPatience) {
  SetNoDelay(socket_, false);
  SetCongestionControl(socket_);
}

ServeTask::~ServeTask() { close(socket_); }

pollfd ServeTask::Watch() const {
  // With nothing to send the peer says nothing more: readable means that it is gone.
  const bool has_work = has_offset_ && (!unsent_.empty() || offset_ < copy_->have());
  const short events = has_work ? POLLOUT : POLLIN;
  return {.fd = socket_, .events = events, .revents = 0};
}

bool ServeTask::ReadOffset() {
  char bytes[kOffset];
  const ssize_t count = recv(socket_, bytes, has_offset_ ? 1 : kOffset - asked_.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
    return true;
  }
  if (count <= 0 || has_offset_) {
    return false;
  }
  asked_.append(bytes, static_cast<size_t>(count));
  if (asked_.size() == kOffset) {
    has_offset_ = true;
    offset_ = Number(asked_.data(), kOffset);
    deadline_ = Clock::now() + kSignOfLife;
  }
  return true;
}

// The next frame.
bool ServeTask::Fill() {
  unsent_.resize(kHead + kMostFrame);
  sent_ = 0;
  const auto got = copy_->Read(offset_, unsent_.data() + kHead, kMostFrame);
  if (!got.ok()) {
    return false;
  }
  Put(*got, kHead, unsent_.data());
  unsent_.resize(kHead + *got);
  offset_ += *got;
  if (offset_ == copy_->size()) {
    SetNoDelay(socket_, true);  // the rest at once: nobody has more for it to wait for
  }
  return true;
}

void ServeTask::Handle(short events) {
  if (events == 0 || is_done_) {
    return;
  }
  if ((events & POLLOUT) == 0) {
    is_done_ = !ReadOffset();
    return;
  }
  if (unsent_.empty() && !Fill()) {
    is_done_ = true;
    return;
  }
  const ssize_t count = send(socket_, unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL);
  if (count < 0 && errno != EAGAIN && errno != EINTR) {
    is_done_ = true;
    return;
  }
  sent_ += count > 0 ? static_cast<size_t>(count) : 0;
  if (sent_ == unsent_.size()) {
    unsent_.clear();
  }
  deadline_ = Clock::now() + kSignOfLife;
}

// What has arrived there, as far as is known here.
void ServeTask::KeepPace(Clock::time_point now) {
  int on_the_way = 0;
  if (has_offset_ && ioctl(socket_, SIOCOUTQ, &on_the_way) == 0) {
    const uint64_t unsent = unsent_.empty() ? 0 : unsent_.size() - sent_;
    const uint64_t left = unsent + static_cast<uint64_t>(on_the_way);
    copy_->pace().Give(offset_ > left ? offset_ - left : 0, now);
  }
}

void ServeTask::Expire(Clock::time_point now) {
  if (!is_done_) {
    KeepPace(now);
  }
  if (now < deadline_ || is_done_) {
    return;
  }
  if (!has_offset_) {
    is_done_ = true;
    return;
  }
  if (unsent_.empty() && offset_ >= copy_->have()) {
    unsent_.assign(kHead, '\0');
    sent_ = 0;
  }
  deadline_ = now + kSignOfLife;
}

}  // namespace sekisho::topology
