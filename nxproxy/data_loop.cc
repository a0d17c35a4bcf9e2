// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/data_loop.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/status.h"

namespace sekisho::nxproxy {
namespace {

constexpr int kEvents = 256;
constexpr int kThrottledWait_ms = 20;
constexpr int kSweep_ms = 1000;
constexpr size_t kAtOnce = 64;  // pointers in a pipe: a write of this size is whole

int64_t NowSeconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

}  // namespace

DataLoop::DataLoop(const StreamLimits& limits, int ended_fd)
    : limits_(limits),
      ended_fd_(ended_fd),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      pipes_(limits.pipes),
      buffer_(new char[Stream::kBufferBytes]) {
  int ends[2];
  CHECK(epoll_.is_open() && pipe2(ends, O_CLOEXEC) == 0);
  wake_read_ = Descriptor(ends[0]);
  wake_write_ = Descriptor(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, ends[0], &event) == 0);
  thread_ = std::thread([this] { Run(); });
}

DataLoop::~DataLoop() {
  is_stopping_ = true;
  Stream* nothing = nullptr;
  Deliver();
  CHECK(write(wake_write_.get(), &nothing, sizeof nothing) == sizeof nothing);
  thread_.join();
}

void DataLoop::Give(std::unique_ptr<Stream> stream) {
  streams_.fetch_add(1, std::memory_order_relaxed);
  given_.push_back(stream.release());
}

void DataLoop::Deliver() {
  for (size_t from = 0; from < given_.size(); from += kAtOnce) {
    const size_t bytes = std::min(kAtOnce, given_.size() - from) * sizeof given_[0];
    CHECK(write(wake_write_.get(), &given_[from], bytes) == static_cast<ssize_t>(bytes));
  }
  given_.clear();
}

void DataLoop::TakeNew() {
  Stream* given[kAtOnce];
  for (;;) {
    const ssize_t got = read(wake_read_.get(), given, sizeof given);
    if (got <= 0) {
      return;
    }
    for (size_t i = 0; i < static_cast<size_t>(got) / sizeof given[0]; ++i) {
      Stream* stream = given[i];
      if (stream == nullptr) {
        continue;  // the stop
      }
      stream->index = static_cast<uint32_t>(all_.size());
      stream->opened_s = now_s_;
      all_.push_back(stream);
      // Side in the pointer's lowest bit.  Registered before the first move: no edge is lost.
      for (int side = 0; side < 2; ++side) {
        epoll_event event{
            .events = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET,
            .data = {.u64 = reinterpret_cast<uintptr_t>(stream) | static_cast<unsigned>(side)}};
        if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stream->fd(side), &event) != 0) {
          stream->Abort(End::kReset);
        }
      }
      Handle(stream);
    }
  }
}

void DataLoop::Handle(Stream* stream) {
  if (stream->is_queued) {
    return;  // its turn comes, or it has ended
  }
  stream->active_s = now_s_;
  Stream::Context context{pipes_, buffer_.get(), limits_.may_splice};
  switch (stream->Move(context)) {
    case Stream::Progress::kWaiting:
      return;
    case Stream::Progress::kMore:
      queued_.push_back(stream);
      break;
    case Stream::Progress::kThrottled:
      throttled_.push_back(stream);
      break;
    case Stream::Progress::kEnded:
      ended_.push_back(stream);
      break;
  }
  stream->is_queued = true;
}

// Only after all events of a turn were looked at: none of them may name a stream that has gone.
void DataLoop::Report() {
  for (Stream* stream : ended_) {
    all_[stream->index] = all_.back();
    all_[stream->index]->index = stream->index;
    all_.pop_back();
    stream->Close(pipes_);
  }
  for (size_t from = 0; from < ended_.size(); from += kAtOnce) {
    const size_t count = std::min(kAtOnce, ended_.size() - from);
    while (write(ended_fd_, &ended_[from], count * sizeof ended_[0]) < 0 && errno == EINTR) {
    }
    streams_.fetch_sub(count, std::memory_order_relaxed);
  }
  ended_.clear();
}

void DataLoop::Sweep(int64_t now_s) {
  for (Stream* stream : all_) {
    const int64_t silent = now_s - stream->active_s;
    if (limits_.lifetime_s > 0 && now_s - stream->opened_s > limits_.lifetime_s) {
      stream->Abort(End::kLifetime);
    } else if (limits_.idle_s > 0 && silent > limits_.idle_s) {
      stream->Abort(End::kIdle);
    } else if (stream->is_half_closed() && silent > limits_.half_closed_s) {
      stream->Abort(End::kHalfClosed);
    } else {
      continue;
    }
    if (!stream->is_queued) {
      stream->is_queued = true;
      ended_.push_back(stream);
    }
  }
}

void DataLoop::Run() {
  epoll_event events[kEvents];
  std::vector<Stream*> turn;
  now_s_ = NowSeconds();
  int64_t swept_s = now_s_;
  while (!is_stopping_) {
    const int timeout = !queued_.empty()      ? 0
                        : !throttled_.empty() ? kThrottledWait_ms
                        : all_.empty()        ? -1
                                              : kSweep_ms;
    const int count = epoll_wait(epoll_.get(), events, kEvents, timeout);
    now_s_ = NowSeconds();
    bool has_new = false;
    for (int i = 0; i < count; ++i) {
      const uint64_t tagged = events[i].data.u64;
      if (tagged == 0) {
        has_new = true;
        continue;
      }
      auto* stream = reinterpret_cast<Stream*>(tagged & ~uint64_t{1});
      stream->OnEvents(static_cast<int>(tagged & 1), events[i].events);
      Handle(stream);
    }
    for (auto* list : {&queued_, &throttled_}) {
      turn.swap(*list);
      for (Stream* stream : turn) {
        stream->is_queued = false;
        Handle(stream);
      }
      turn.clear();
    }
    if (has_new) {
      TakeNew();
    }
    if (now_s_ != swept_s) {
      swept_s = now_s_;
      Sweep(now_s_);
    }
    busy_.store(!queued_.empty(), std::memory_order_relaxed);
    Report();
  }
  TakeNew();
  for (Stream* stream : all_) {
    stream->Abort(End::kReset);
    stream->Close(pipes_);
    delete stream;
  }
}

}  // namespace sekisho::nxproxy
