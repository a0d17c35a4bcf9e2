// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/poller.h"

#include <cerrno>

#include <unistd.h>

#include "common/status.h"

namespace sekisho::nxproxy {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

void Descriptor::reset() {
  if (fd_ >= 0) {
    close(fd_);
    fd_ = -1;
  }
}

Poller::Poller() : epoll_(epoll_create1(EPOLL_CLOEXEC)) { CHECK(epoll_.is_open()); }

void Poller::Add(int fd, uint32_t events, Handler* handler) {
  epoll_event event{.events = events, .data = {.ptr = handler}};
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
}

void Poller::Modify(int fd, uint32_t events, Handler* handler) {
  epoll_event event{.events = events, .data = {.ptr = handler}};
  CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0);
}

void Poller::Remove(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Poller::RunOnce(int timeout_ms) {
  count_ = epoll_wait(epoll_.get(), events_, kEventsMax, timeout_ms);
  CHECK(count_ >= 0 || errno == EINTR);
  for (next_ = 0; next_ < count_;) {
    const epoll_event event = events_[next_++];
    if ((event.data.u64 & Tagged::kTag) != 0) {
      tagged_->OnTagged(event.data.u64, event.events);
    } else if (event.data.ptr != nullptr) {
      static_cast<Handler*>(event.data.ptr)->OnEvents(event.events);
    }
  }
  count_ = next_ = 0;
}

void Poller::Forget(Handler* handler) {
  for (int i = next_; i < count_; ++i) {
    if (events_[i].data.ptr == handler) {
      events_[i].data.ptr = nullptr;
    }
  }
}

}  // namespace sekisho::nxproxy
