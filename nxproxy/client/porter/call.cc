// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/call.h"

#include <cerrno>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/wire/preface.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kOpeningMs = 15'000;  // the relay's own limits are shorter

}  // namespace

Call::Call(Loop& loop, int fd, OnOpen on_open) : loop_(loop), fd_(fd), on_open_(std::move(on_open)) {
  if (fd_ >= 0) {
    loop_.Watch(fd_, EPOLLIN, [this](uint32_t) { OnEvents(); });
  }
  limit_ = loop_.After(fd_ < 0 ? 0 : kOpeningMs, [this] { End(-1, wire::Code::kTargetTimeout); });
}

void Call::Drop() {
  loop_.Cancel(limit_);
  if (fd_ >= 0) {
    loop_.Forget(fd_);
    close(std::exchange(fd_, -1));
  }
}

void Call::End(int fd, wire::Code code) {
  const auto on_open = on_open_;
  if (fd >= 0) {
    loop_.Forget(fd_);
    fd_ = -1;
  }
  Drop();
  on_open(fd, code);  // may destroy us
}

void Call::OnEvents() {
  char buffer[wire::kOpeningBytes];
  const ssize_t got = recv(fd_, buffer, wire::kOpeningBytes - opening_.size(), 0);
  if (got < 0 && errno == EAGAIN) {
    return;
  }
  if (got > 0) {
    opening_.append(buffer, static_cast<size_t>(got));
    if (opening_.size() < wire::kOpeningBytes) {
      return;
    }
  }
  const auto opening = wire::DecodeOpening(opening_);
  const wire::Code code = opening ? opening->code : wire::Code::kTargetUnreachable;
  End(code == wire::Code::kOk ? fd_ : -1, code);
}

}  // namespace sekisho::nxproxy::client
