// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/http.h"

#include <cerrno>

#include <fmt/format.h>
#include <sys/socket.h>

namespace sekisho::nxproxy {
namespace {

constexpr size_t kRequestsMax = 16;
constexpr size_t kHeadMax = 8192;
constexpr int64_t kLife_ms = 2000;

}  // namespace

struct Http::Request final : Handler {
  Request(Http& owner, Descriptor fd)
      : http(owner), socket(std::move(fd)), deadline_ms(owner.now_ms_ + kLife_ms) {
    http.poller_.Add(socket.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, this);
  }
  ~Request() {
    http.poller_.Remove(socket.get());
    http.poller_.Forget(this);
  }
  void OnEvents(uint32_t /*events*/) override { http.Answer(*this); }

  Http& http;
  Descriptor socket;
  int64_t deadline_ms;
  std::string head;
  std::string answer;
  size_t sent = 0;
};

Http::Http(Poller& poller, Descriptor listening,
           std::function<std::string(const std::string&)> page)
    : poller_(poller),
      page_(std::move(page)),
      listener_(poller, std::move(listening),
                {.accepted =
                     [this](Descriptor socket, const wire::Address& /*peer*/) {
                       if (requests_.size() < kRequestsMax) {
                         auto request = std::make_unique<Request>(*this, std::move(socket));
                         Request* raw = request.get();
                         requests_.emplace(raw, std::move(request));
                       }
                     },
                 .exhausted = [] {}}) {}

Http::~Http() = default;

void Http::Tick(int64_t now_ms) {
  now_ms_ = now_ms;
  dead_.clear();
  std::erase_if(requests_,
                [now_ms](const auto& entry) { return entry.first->deadline_ms <= now_ms; });
}

void Http::Answer(Request& request) {
  const auto finish = [&] {
    const auto at = requests_.find(&request);
    if (at != requests_.end()) {
      shutdown(request.socket.get(), SHUT_WR);
      dead_.push_back(std::move(at->second));
      requests_.erase(at);
    }
  };
  while (request.answer.empty()) {
    char buffer[2048];
    const ssize_t got = recv(request.socket.get(), buffer, sizeof buffer, 0);
    if (got <= 0) {
      if (got == 0 || errno != EAGAIN) {
        finish();
      }
      return;
    }
    request.head.append(buffer, static_cast<size_t>(got));
    if (request.head.size() > kHeadMax) {
      finish();
      return;
    }
    if (request.head.find("\r\n\r\n") != std::string::npos) {
      const size_t end = request.head.find(' ', 4);
      const bool is_get = request.head.starts_with("GET ") && end != std::string::npos;
      const std::string text = is_get ? page_(request.head.substr(4, end - 4)) : "";
      request.answer = fmt::format(
          "HTTP/1.0 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
          text.empty() ? "404 Not Found" : "200 OK",
          text.starts_with("{") ? "application/json" : "text/plain", text.size(), text);
    }
  }
  while (request.sent < request.answer.size()) {
    const ssize_t now = send(request.socket.get(), request.answer.data() + request.sent,
                             request.answer.size() - request.sent, MSG_NOSIGNAL);
    if (now < 0) {
      if (errno != EAGAIN) {
        finish();
      }
      return;
    }
    request.sent += static_cast<size_t>(now);
  }
  finish();
}

}  // namespace sekisho::nxproxy
