// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/door.h"

#include <cerrno>
#include <utility>

#include <openssl/rand.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/sockets.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kExpectedMs = 30'000;
constexpr int64_t kCallerMs = 5000;
constexpr size_t kExpectedMax = 1024;
constexpr size_t kCallersMax = 1024;

}  // namespace

Door::Door(Loop& loop, const wire::Address& here) : loop_(loop) {
  sockaddr_storage address;
  const socklen_t length = wire::ToSocket(here, address);
  listener_ = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener_ >= 0 && bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0) {
    address_ = LocalOf(listener_);
  }
}

Door::~Door() {
  loop_.Forget(listener_);
  close(listener_);
  while (!callers_.empty()) {
    Drop(callers_.begin());
  }
}

bool Door::Open() {
  if (!is_open_ && port() != 0 && listen(listener_, 512) == 0) {
    is_open_ = true;
    loop_.Watch(listener_, EPOLLIN, [this](uint32_t) { Came(); });
  }
  return is_open_;
}

std::string Door::NewCookie() {
  std::string cookie(kCookieBytes, 0);
  const int64_t now_ms = loop_.now_ms();
  std::erase_if(expected_, [&](const auto& one) { return one.second.until_ms < now_ms; });
  if (expected_.size() >= kExpectedMax ||
      RAND_bytes(reinterpret_cast<unsigned char*>(cookie.data()), kCookieBytes) != 1) {
    return "";
  }
  return cookie;
}

void Door::Expect(const std::string& cookie, OnCome on_come) {
  expected_[cookie] = {std::move(on_come), loop_.now_ms() + kExpectedMs};
}

void Door::Came() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    return;
  }
  const int64_t now_ms = loop_.now_ms();
  while (!callers_.empty() && (callers_.size() >= kCallersMax ||
                               callers_.front().since_ms + kCallerMs < now_ms)) {
    Drop(callers_.begin());
  }
  const auto caller = callers_.insert(callers_.end(), Caller{fd, now_ms, ""});
  loop_.Watch(fd, EPOLLIN, [this, caller](uint32_t) { Read(caller); });
}

void Door::Drop(std::list<Caller>::iterator caller) {
  loop_.Forget(caller->fd);
  Reset(caller->fd);
  callers_.erase(caller);
}

void Door::Read(std::list<Caller>::iterator caller) {
  char bytes[kCookieBytes];
  const ssize_t got = recv(caller->fd, bytes, kCookieBytes - caller->cookie.size(), 0);
  if (got < 0 && errno == EAGAIN) {
    return;
  }
  if (got <= 0) {
    Drop(caller);
    return;
  }
  caller->cookie.append(bytes, static_cast<size_t>(got));
  if (caller->cookie.size() < kCookieBytes) {
    return;
  }
  const auto expected = expected_.find(caller->cookie);
  if (expected == expected_.end()) {
    Drop(caller);
    return;
  }
  const OnCome on_come = std::move(expected->second.on_come);
  expected_.erase(expected);
  const int fd = caller->fd;
  loop_.Forget(fd);
  callers_.erase(caller);
  on_come(fd);
}

}  // namespace sekisho::nxproxy::client
