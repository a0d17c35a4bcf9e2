// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/control.h"

#include <cerrno>

#include <sys/socket.h>

namespace sekisho::nxproxy {
namespace {

constexpr size_t kOutputMax = 4 << 20;  // a client that does not read its answers is let go

wire::Address Name(int fd, int (*get)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage raw{};
  socklen_t length = sizeof raw;
  if (get(fd, reinterpret_cast<sockaddr*>(&raw), &length) != 0) {
    return {};
  }
  return wire::FromSocket(reinterpret_cast<sockaddr*>(&raw)).value_or(wire::Address{});
}

}  // namespace

Control::Control(Poller& poller, Descriptor socket, TlsChannel channel, Events events)
    : poller_(poller),
      socket_(std::move(socket)),
      channel_(std::move(channel)),
      events_(std::move(events)) {
  poller_.Add(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, this);
}

Control::~Control() {
  poller_.Remove(socket_.get());
  poller_.Forget(this);
}

wire::Address Control::local() const { return Name(socket_.get(), getsockname); }
wire::Address Control::peer() const { return Name(socket_.get(), getpeername); }

void Control::Start(std::string_view first) {
  if (!first.empty()) {
    Take(first);
  }
  if (!is_lost_) {
    Flush();
  }
}

void Control::Send(const wire::Message& message) {
  const std::string frame = wire::Encode(message);
  if (is_lost_ || frame.empty()) {
    return;
  }
  channel_.Write(frame);
  if (!is_inside_) {
    Flush();
  }
}

void Control::Finish(const std::string& why) {
  if (is_inside_) {
    finish_ = why;
    return;
  }
  Flush();
  Lose(why);
}

void Control::Lose(const std::string& why) {
  if (!is_lost_) {
    is_lost_ = true;
    events_.lost(why);  // destroys us, perhaps
  }
}

void Control::OnEvents(uint32_t events) {
  if (is_lost_) {
    return;
  }
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    char buffer[16 * 1024];
    for (;;) {
      const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
      if (got < 0 && errno == EAGAIN) {
        break;
      }
      if (got <= 0) {
        Lose(got == 0 ? "closed" : "reset");
        return;
      }
      Take({buffer, static_cast<size_t>(got)});
      if (is_lost_) {
        return;
      }
      Flush();  // who asks much and reads nothing is found out before we hold it all
      if (!finish_.empty()) {
        break;
      }
    }
  }
  Flush();
  if (!finish_.empty()) {
    Lose(finish_);
  }
}

void Control::Take(std::string_view bytes) {
  is_inside_ = true;
  const bool is_up = channel_.Feed(bytes);
  if (channel_.is_established() && !was_established_) {
    was_established_ = true;
    events_.established();
  }
  frames_ += channel_.TakeText();
  std::string why = is_up ? "" : "tls: " + channel_.error();
  while (finish_.empty()) {
    const auto length = wire::FrameLength(frames_);
    if (!length || (*length > 0 && frames_.size() < *length)) {
      break;
    }
    const size_t end = *length == 0 ? frames_.size() : *length;
    wire::Decoded decoded = wire::Decode(std::string_view(frames_).substr(0, end));
    frames_.erase(0, end);
    if (decoded.code != wire::Code::kOk) {
      Send(wire::ErrorMessage(decoded.message.id, decoded.code, decoded.why));
      why = decoded.why;
      break;
    }
    events_.received(std::move(decoded.message));
  }
  is_inside_ = false;
  if (!why.empty()) {
    Flush();
    Lose(why);
  }
}

void Control::Flush() {
  output_ += channel_.TakeOutput();
  size_t sent = 0;
  while (sent < output_.size()) {
    const ssize_t now =
        send(socket_.get(), output_.data() + sent, output_.size() - sent, MSG_NOSIGNAL);
    if (now < 0) {
      if (errno != EAGAIN || output_.size() > kOutputMax) {
        output_.clear();  // the reading side learns it
        shutdown(socket_.get(), SHUT_RDWR);
        return;
      }
      break;
    }
    sent += static_cast<size_t>(now);
  }
  output_.erase(0, sent);
}

}  // namespace sekisho::nxproxy
