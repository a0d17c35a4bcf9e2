// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/stream_loop.h"

#include <algorithm>
#include <ctime>

#include <sys/epoll.h>

#include "common/status.h"

namespace sekisho::nxproxy {
namespace {

constexpr int kThrottledWait_ms = 20;
constexpr int kSweep_ms = 1000;

int64_t NowSeconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

}  // namespace

StreamLoop::StreamLoop(int epoll, const StreamLimits& limits, bool lets_go)
    : limits_(limits),
      lets_go_(lets_go),
      epoll_(epoll),
      pipes_(limits.pipes),
      buffer_(new char[Stream::kBufferBytes]),
      now_s_(NowSeconds()),
      swept_s_(now_s_) {}

StreamLoop::~StreamLoop() {
  for (Stream* stream : all_) {
    stream->Abort(End::kReset);
    stream->Close(pipes_);
    delete stream;
  }
}

int StreamLoop::Timeout_ms() const {
  return !queued_.empty() ? 0 : !throttled_.empty() ? kThrottledWait_ms : all_.empty() ? -1 : kSweep_ms;
}

void StreamLoop::Take(std::unique_ptr<Stream> taken) {
  Stream* stream = taken.release();
  stream->index = static_cast<uint32_t>(all_.size());
  if (stream->opened_s == 0) {
    stream->opened_s = now_s_;
  }
  all_.push_back(stream);
  // Side in the pointer's lowest bit.  Registered before the first move: no edge is lost.
  for (int side = 0; side < 2; ++side) {
    epoll_event event{
        .events = EPOLLIN | EPOLLPRI | EPOLLOUT | EPOLLRDHUP | EPOLLET,
        .data = {.u64 = reinterpret_cast<uintptr_t>(stream) | kTag | static_cast<unsigned>(side)}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, stream->fd(side), &event) != 0) {
      stream->Abort(End::kReset);
    }
  }
  Handle(stream);
}

void StreamLoop::Handle(Stream* stream) {
  if (stream->is_queued) {
    return;  // its turn comes, or it has ended
  }
  stream->active_s = now_s_;
  Stream::Context context{pipes_, buffer_.get(), limits_.turn_bytes, limits_.may_splice};
  switch (stream->Move(context)) {
    case Stream::Progress::kWaiting:
      return;
    case Stream::Progress::kMore:
      (lets_go_ ? restless_ : queued_).push_back(stream);
      break;
    case Stream::Progress::kThrottled:
      (lets_go_ ? restless_ : throttled_).push_back(stream);
      break;
    case Stream::Progress::kEnded:
      ended_.push_back(stream);
      break;
  }
  stream->is_queued = true;
}

void StreamLoop::Sweep() {
  const int64_t ask_every_s = std::max<int64_t>(1, limits_.silent_s / 8);
  for (Stream* stream : all_) {
    const int64_t silent = now_s_ - stream->active_s;
    if (limits_.lifetime_s > 0 && now_s_ - stream->opened_s > limits_.lifetime_s) {
      stream->Abort(End::kLifetime);
    } else if (limits_.idle_s > 0 && silent > limits_.idle_s) {
      stream->Abort(End::kIdle);
    } else if (stream->is_half_closed() && silent > limits_.half_closed_s) {
      stream->Abort(End::kHalfClosed);
    } else if ((now_s_ - stream->opened_s) % ask_every_s == 0 &&
               stream->HasSilentSide(now_s_, limits_.silent_s)) {
      stream->Abort(End::kSilent);
    } else {
      continue;
    }
    if (!stream->is_queued) {
      stream->is_queued = true;
      ended_.push_back(stream);
    }
  }
}

void StreamLoop::OnTagged(uint64_t number, uint32_t events) {
  auto* stream = reinterpret_cast<Stream*>(number & ~(kTag | 1));
  stream->OnEvents(static_cast<int>(number & 1), events);
  Handle(stream);
}

void StreamLoop::EndTurn() {
  now_s_ = NowSeconds();
  for (auto* list : {&queued_, &throttled_}) {
    turn_.swap(*list);
    for (Stream* stream : turn_) {
      stream->is_queued = false;
      Handle(stream);
    }
    turn_.clear();
  }
  if (now_s_ != swept_s_) {
    swept_s_ = now_s_;
    Sweep();
  }
}

std::unique_ptr<Stream> StreamLoop::Remove(Stream* stream) {
  all_[stream->index] = all_.back();
  all_[stream->index]->index = stream->index;
  all_.pop_back();
  stream->is_queued = false;
  return std::unique_ptr<Stream>(stream);
}

// Only after all events of a turn were looked at: none of them may name a stream that has gone.
StreamLoop::Streams StreamLoop::TakeEnded() {
  Streams ended;
  ended.reserve(ended_.size());
  for (Stream* stream : ended_) {
    ended.push_back(Remove(stream));
    stream->Close(pipes_);
  }
  ended_.clear();
  return ended;
}

StreamLoop::Streams StreamLoop::TakeRestless() {
  Streams restless;
  restless.reserve(restless_.size());
  for (Stream* stream : restless_) {
    for (int side = 0; side < 2; ++side) {
      epoll_ctl(epoll_, EPOLL_CTL_DEL, stream->fd(side), nullptr);
    }
    restless.push_back(Remove(stream));
  }
  restless_.clear();
  return restless;
}

StreamLoop::Streams StreamLoop::TakeAged() {
  for (Stream* stream : all_) {
    if (stream->is_aged && !stream->is_queued) {
      stream->is_queued = true;
      restless_.push_back(stream);
    }
    stream->is_aged = true;
  }
  return TakeRestless();
}

}  // namespace sekisho::nxproxy
