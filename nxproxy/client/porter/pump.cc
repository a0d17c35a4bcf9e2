// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/pump.h"

#include <cerrno>

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

constexpr size_t kChunk = 256 * 1024;
constexpr int kStepsAtOnce = 16;

// What has just been read, of any stream: it stays in the processor's cache, and an idle stream has
// none.  The porter has one thread.
char* HotBuffer() {
  static char buffer[kChunk];
  return buffer;
}

bool WriteAll(int fd, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t wrote = write(fd, bytes, count);
    if (wrote < 0 && errno != EINTR) {
      return false;
    }
    bytes += wrote > 0 ? wrote : 0;
    count -= wrote > 0 ? static_cast<size_t>(wrote) : 0;
  }
  return true;
}

void WaitUntilWritable(int fd) {
  pollfd one = {fd, POLLOUT, 0};
  poll(&one, 1, -1);
}

bool WriteAll(Channel& channel, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t wrote = channel.Write(bytes, count);
    if (wrote < 0 && errno == EAGAIN) {
      WaitUntilWritable(channel.fd());
    } else if (wrote < 0 && errno != EINTR) {
      return false;
    }
    bytes += wrote > 0 ? wrote : 0;
    count -= wrote > 0 ? static_cast<size_t>(wrote) : 0;
  }
  return true;
}

}  // namespace

Pump::Pump(Loop& loop, std::unique_ptr<Channel> one, std::unique_ptr<Channel> other,
           std::function<void()> on_end)
    : loop_(loop),
      one_(std::move(one)),
      other_(std::move(other)),
      on_end_(std::move(on_end)),
      there_{*one_, *other_},
      back_{*other_, *one_} {
  for (const Channel* channel : {one_.get(), other_.get()}) {
    loop_.Watch(channel->fd(), EPOLLIN, [this](uint32_t) { Move(); });
  }
  if (one_->has_more() || other_->has_more()) {
    again_ = loop_.After(0, [this] { Move(); });
  }
}

Pump::~Pump() {
  loop_.Cancel(again_);
  loop_.Forget(one_->fd());
  loop_.Forget(other_->fd());
}

void Pump::Move() {
  loop_.Cancel(again_);
  const Moved there = Move(there_);
  const Moved back = there != Moved::kBroken ? Move(back_) : Moved::kBroken;
  if (back == Moved::kBroken) {
    one_->ResetAtClose();
    other_->ResetAtClose();
    End();
  } else if (there_.is_passed && back_.is_passed) {
    End();
  } else {
    Watch();
    if (there == Moved::kMore || back == Moved::kMore) {
      again_ = loop_.After(0, [this] { Move(); });
    }
  }
}

// Once: the other descriptor may have an event in the same turn, before we are destroyed.
void Pump::End() {
  loop_.Forget(one_->fd());
  loop_.Forget(other_->fd());
  const auto on_end = on_end_;
  on_end();
}

Pump::Moved Pump::Move(Way& way) {
  for (int i = 0; i < kStepsAtOnce; ++i) {
    bool has_moved = false;
    if (!Step(way, has_moved)) {
      return Moved::kBroken;
    }
    if (!has_moved) {
      return Moved::kAll;
    }
  }
  return Moved::kMore;
}

bool Pump::Step(Way& way, bool& has_moved) {
  const char* bytes = way.waiting.data();
  size_t count = way.waiting.size();
  if (way.waiting.empty() && !way.is_ended) {
    const ssize_t got = way.from.Read(HotBuffer(), kChunk);
    if (got < 0 && errno != EAGAIN) {
      return false;
    }
    way.is_ended = got == 0;
    bytes = HotBuffer();
    count = got > 0 ? static_cast<size_t>(got) : 0;
  }
  size_t sent = 0;
  while (sent < count) {
    const ssize_t now = way.to.Write(bytes + sent, count - sent);
    if (now < 0 && errno != EAGAIN) {
      return false;
    }
    if (now <= 0) {
      break;
    }
    sent += static_cast<size_t>(now);
  }
  has_moved = sent > 0;
  if (way.waiting.empty()) {
    way.waiting.assign(bytes + sent, count - sent);
  } else {
    way.waiting.erase(0, sent);
  }
  if (way.waiting.empty() && way.is_ended && !way.is_passed) {
    way.is_passed = way.to.End();
  }
  return true;
}

void Pump::Watch() {
  const auto is_full = [](const Way& way) {
    return !way.waiting.empty() || (way.is_ended && !way.is_passed);
  };
  const auto events_of = [&](const Way& reads, const Way& writes) {
    const bool wants_read = reads.waiting.empty() && !reads.is_ended;
    return (wants_read ? EPOLLIN : 0u) | (is_full(writes) ? EPOLLOUT : 0u);
  };
  loop_.Change(one_->fd(), events_of(there_, back_));
  loop_.Change(other_->fd(), events_of(back_, there_));
}

int PumpStandard(Channel& channel) {
  std::string buffer(kChunk, 0);
  bool reads_input = true;
  while (true) {
    pollfd both[2] = {{channel.fd(), POLLIN, 0}, {reads_input ? 0 : -1, POLLIN, 0}};
    if (poll(both, 2, channel.has_more() ? 0 : -1) < 0 && errno != EINTR) {
      return errno;
    }
    if (both[0].revents != 0 || channel.has_more()) {
      const ssize_t got = channel.Read(buffer.data(), buffer.size());
      if (got == 0) {
        return 0;
      }
      if (got < 0 && errno != EAGAIN) {
        return errno;
      }
      if (got > 0 && !WriteAll(1, buffer.data(), static_cast<size_t>(got))) {
        return errno;
      }
    }
    if (both[1].revents != 0) {
      const ssize_t got = read(0, buffer.data(), buffer.size());
      if (got <= 0) {
        reads_input = false;
        while (!channel.End()) {
          WaitUntilWritable(channel.fd());
        }
      } else if (!WriteAll(channel, buffer.data(), static_cast<size_t>(got))) {
        return errno;
      }
    }
  }
}

}  // namespace sekisho::nxproxy::client
