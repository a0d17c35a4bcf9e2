// SPDX-License-Identifier: Apache-2.0
// epoll(7), and descriptors with one owner.
#pragma once

#include <cstdint>

#include <sys/epoll.h>

namespace sekisho::nxproxy {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void reset();

 private:
  int fd_ = -1;
};

// What an event is given to.  Lives at least until its descriptor is removed and the turn is over.
class Handler {
 public:
  virtual void OnEvents(uint32_t events) = 0;

 protected:
  ~Handler() = default;
};

// What has very many descriptors: its events come with a number that it has given to epoll itself.
class Tagged {
 public:
  static constexpr uint64_t kTag = 2;  // set in each such number, and in no handler's address
  virtual void OnTagged(uint64_t number, uint32_t events) = 0;

 protected:
  ~Tagged() = default;
};

class Poller {
 public:
  Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  void Add(int fd, uint32_t events, Handler* handler);
  void Modify(int fd, uint32_t events, Handler* handler);
  void Remove(int fd);
  int fd() const { return epoll_.get(); }
  void SetTagged(Tagged* tagged) { tagged_ = tagged; }

  // Waits once and calls the handlers.  A handler that dies in a turn says so with Forget().
  void RunOnce(int timeout_ms);
  void Forget(Handler* handler);

 private:
  static constexpr int kEventsMax = 256;
  Descriptor epoll_;
  epoll_event events_[kEventsMax];
  int count_ = 0;
  int next_ = 0;
  Tagged* tagged_ = nullptr;
};

}  // namespace sekisho::nxproxy
