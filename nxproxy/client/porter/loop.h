// SPDX-License-Identifier: Apache-2.0
// The porter's one thread: descriptors, timers, and nothing else.  std only, as all of
// nxproxy/client.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace sekisho::nxproxy::client {

class Loop {
 public:
  using OnEvents = std::function<void(uint32_t epoll_events)>;
  using Task = std::function<void()>;
  using TimerId = uint64_t;

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Level-triggered.  A callback may remove any descriptor, its own too.
  void Watch(int fd, uint32_t epoll_events, OnEvents callback);
  void Change(int fd, uint32_t epoll_events);
  void Forget(int fd);  // before it is closed; harmless if it is not watched

  TimerId After(int64_t milliseconds, Task task);
  void Cancel(TimerId id);  // harmless if it has run

  void Run();  // until Stop, also one that came before
  void Stop() { is_stopping_ = true; }

  int64_t now_ms() const;  // monotonic

 private:
  struct Watched {
    OnEvents callback;
    uint64_t since = 0;  // the turn in which it came
  };

  int epoll_;
  bool is_stopping_ = false;
  TimerId next_timer_ = 1;
  uint64_t turn_ = 0;
  std::map<int, std::shared_ptr<Watched>> watched_;
  std::map<std::pair<int64_t, TimerId>, Task> timers_;
  std::map<TimerId, int64_t> due_;
};

}  // namespace sekisho::nxproxy::client
