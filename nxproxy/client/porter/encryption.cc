// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/encryption.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/rand.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/sockets.h"
#include "nxproxy/client/rules.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr size_t kCookieBytes = 32;
constexpr int64_t kCookieMs = 30'000;
constexpr size_t kExpectedMax = 1024;
constexpr size_t kCallersMax = 1024;

void NoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Encryption::Encryption(Loop& loop, std::unique_ptr<OwnEnd> end, Say say)
    : loop_(loop), end_(std::move(end)), say_(std::move(say)) {
  OpenDoor();
}

Encryption::~Encryption() {
  loop_.Forget(listener_);
  close(listener_);
  while (!callers_.empty()) {
    Drop(callers_.begin());
  }
}

// A greeting that is over is destroyed a moment later: it is calling us.
void Encryption::Start(std::unique_ptr<TlsStream> stream, Greeting::OnDone on_done) {
  const auto place = greetings_.emplace(greetings_.end());
  *place = std::make_unique<Greeting>(
      loop_, std::move(stream),
      [this, place, on_done = std::move(on_done)](std::unique_ptr<TlsStream> greeted,
                                                  const std::string& why) {
        loop_.After(0, [this, place] { greetings_.erase(place); });
        on_done(std::move(greeted), why);
      });
}

void Encryption::Greet(int fd, std::vector<std::string> names, OnGreeted on_greeted) {
  Start(end_->Accept(fd, std::move(names)),
        [this, on_greeted = std::move(on_greeted)](std::unique_ptr<TlsStream> stream,
                                                   const std::string& why) {
          if (stream == nullptr) {
            say_("a peer was turned away: " + why);
            return;
          }
          on_greeted(std::move(stream));
        });
}

void Encryption::Join(std::unique_ptr<Channel> program, std::unique_ptr<Channel> far) {
  NoDelay(program->fd());
  const auto place = pumps_.emplace(pumps_.end());
  *place = std::make_unique<Pump>(loop_, std::move(program), std::move(far), [this, place] {
    loop_.After(0, [this, place] { pumps_.erase(place); });
  });
}

void Encryption::OpenDoor() {
  wire::Address here;
  here.ip[10] = here.ip[11] = 0xff;
  std::memcpy(here.ip.data() + 12, kKnockIpV4, sizeof kKnockIpV4);
  sockaddr_storage address;
  const socklen_t length = wire::ToSocket(here, address);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener_, 512) != 0) {
    std::perror("sekisho: the porter's door");
    std::abort();
  }
  door_ = LocalOf(listener_);
  loop_.Watch(listener_, EPOLLIN, [this](uint32_t) { Came(); });
}

std::string Encryption::Expect(Destination destination) {
  std::string cookie(kCookieBytes, 0);
  const int64_t now_ms = loop_.now_ms();
  std::erase_if(expected_, [&](const auto& one) { return one.second.until_ms < now_ms; });
  if (expected_.size() >= kExpectedMax ||
      RAND_bytes(reinterpret_cast<unsigned char*>(cookie.data()), kCookieBytes) != 1) {
    return "";
  }
  expected_[cookie] = {std::move(destination), now_ms + kCookieMs};
  return cookie;
}

void Encryption::Came() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {
    return;
  }
  if (callers_.size() >= kCallersMax) {
    Drop(callers_.begin());
  }
  const auto caller = callers_.insert(callers_.end(), Caller{fd, ""});
  loop_.Watch(fd, EPOLLIN, [this, caller](uint32_t) { Read(caller); });
}

void Encryption::Drop(std::list<Caller>::iterator caller) {
  loop_.Forget(caller->fd);
  Reset(caller->fd);
  callers_.erase(caller);
}

void Encryption::Read(std::list<Caller>::iterator caller) {
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
  const Destination destination = std::move(expected->second.destination);
  expected_.erase(expected);
  const int fd = caller->fd;
  loop_.Forget(fd);
  callers_.erase(caller);
  Lead(fd, destination);
}

void Encryption::Lead(int fd, const Destination& destination) {
  const int far = destination.dial();
  if (far < 0) {
    Reset(fd);
    return;
  }
  const auto refused = [say = say_, name = destination.name](const std::string& why) {
    say("connection to " + name + " failed: " + why);
  };
  Start(end_->Connect(far, destination.name),
        [this, fd, refused](std::unique_ptr<TlsStream> stream, const std::string& why) {
          if (stream == nullptr) {
            refused(why);
            Reset(fd);
            return;
          }
          stream->OnRefused(refused);
          Join(std::make_unique<Channel>(fd), std::move(stream));
        });
}

}  // namespace sekisho::nxproxy::client
