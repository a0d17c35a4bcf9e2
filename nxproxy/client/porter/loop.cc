// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/loop.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <sys/epoll.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {

Loop::Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) {
    std::perror("epoll_create1");
    std::abort();
  }
}

Loop::~Loop() { close(epoll_); }

void Loop::Watch(int fd, uint32_t epoll_events, OnEvents callback) {
  watched_[fd] = std::make_shared<Watched>(Watched{std::move(callback), turn_});
  epoll_event event{};
  event.events = epoll_events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0 && errno == EEXIST) {
    epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
  }
}

void Loop::Change(int fd, uint32_t epoll_events) {
  epoll_event event{};
  event.events = epoll_events;
  event.data.fd = fd;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Loop::Forget(int fd) {
  if (watched_.erase(fd) != 0) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  }
}

Loop::TimerId Loop::After(int64_t milliseconds, Task task) {
  const TimerId id = next_timer_++;
  const int64_t due = now_ms() + milliseconds;
  due_[id] = due;
  timers_.emplace(std::pair(due, id), std::move(task));
  return id;
}

void Loop::Cancel(TimerId id) {
  const auto found = due_.find(id);
  if (found != due_.end()) {
    timers_.erase({found->second, id});
    due_.erase(found);
  }
}

int64_t Loop::now_ms() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Loop::Run() {
  constexpr int kBatch = 64;
  epoll_event events[kBatch];
  while (!is_stopping_) {
    int wait_ms = -1;
    if (!timers_.empty()) {
      wait_ms = static_cast<int>(
          std::clamp<int64_t>(timers_.begin()->first.first - now_ms(), 0, 3'600'000));
    }
    const int count = epoll_wait(epoll_, events, kBatch, wait_ms);
    ++turn_;
    for (int i = 0; i < count && !is_stopping_; ++i) {
      const auto found = watched_.find(events[i].data.fd);
      // One that came in this very turn: the event is of whoever had the number before.
      if (found != watched_.end() && found->second->since != turn_) {
        const std::shared_ptr<Watched> watched = found->second;  // it may forget itself
        watched->callback(events[i].events);
      }
    }
    while (!is_stopping_ && !timers_.empty() && timers_.begin()->first.first <= now_ms()) {
      const auto first = timers_.begin();
      const Task task = std::move(first->second);
      due_.erase(first->first.second);
      timers_.erase(first);
      task();
    }
  }
  is_stopping_ = false;
}

}  // namespace sekisho::nxproxy::client
