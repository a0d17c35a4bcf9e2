// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/data_loop.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/status.h"

namespace sekisho::nxproxy {
namespace {

constexpr int kEvents = 256;
constexpr size_t kAtOnce = 64;  // pointers in a pipe: a write of this size is whole

}  // namespace

DataLoop::DataLoop(const StreamLimits& limits, int ended_fd)
    : ended_fd_(ended_fd),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      loop_(epoll_.get(), limits, false) {
  int ends[2];
  CHECK(epoll_.is_open() && pipe2(ends, O_CLOEXEC) == 0);
  wake_read_ = Descriptor(ends[0]);
  wake_write_ = Descriptor(ends[1]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = 0}};
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
      if (given[i] != nullptr) {  // null: the stop
        loop_.Take(std::unique_ptr<Stream>(given[i]));
      }
    }
  }
}

void DataLoop::Report() {
  Stream* ended[kAtOnce];
  size_t count = 0;
  const auto tell = [&] {
    while (write(ended_fd_, ended, count * sizeof ended[0]) < 0 && errno == EINTR) {
    }
    streams_.fetch_sub(count, std::memory_order_relaxed);
    count = 0;
  };
  for (auto& stream : loop_.TakeEnded()) {
    ended[count++] = stream.release();
    if (count == kAtOnce) {
      tell();
    }
  }
  if (count > 0) {
    tell();
  }
}

void DataLoop::Run() {
  epoll_event events[kEvents];
  while (!is_stopping_) {
    const int count = epoll_wait(epoll_.get(), events, kEvents, loop_.Timeout_ms());
    bool has_new = false;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == 0) {
        has_new = true;
      } else {
        loop_.OnTagged(events[i].data.u64, events[i].events);
      }
    }
    loop_.EndTurn();
    if (has_new) {
      TakeNew();
    }
    busy_.store(loop_.is_busy(), std::memory_order_relaxed);
    Report();
  }
  TakeNew();
}

}  // namespace sekisho::nxproxy
