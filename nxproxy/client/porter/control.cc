// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/control.h"

#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/sockets.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kGreetingMs = 5000;
constexpr size_t kOutMax = 4 << 20;

bool SetOption(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

}  // namespace

Control::Control(Loop& loop, const wire::Address& place, const std::string& first,
                 const std::string& host, SSL_CTX* context, Handlers handlers)
    : loop_(loop),
      handlers_(std::move(handlers)),
      host_(host),
      first_(first),
      ssl_(SSL_new(context)),
      last_heard_ms_(loop.now_ms()) {
  sockaddr_storage address;
  const socklen_t length = wire::ToSocket(place, address);
  fd_ = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  SetOption(fd_, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd_, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(fd_, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  SetOption(fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, 60'000);
  // What is written first goes with the SYN, where the system lets clients do that: nobody waits for the connection.
  if (SetOption(fd_, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1) && SetOption(fd_, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)) {
    state_ = State::kPreface;
  }
  limit_ = loop_.After(kGreetingMs, [this] {
    Close(IsConnected() ? "it is connected, but does not greet within 5 s" : "no answer within 5 s");
  });
  if (!ExpectHost(ssl_.get(), host_) ||
      (connect(fd_, reinterpret_cast<sockaddr*>(&address), length) != 0 && errno != EINPROGRESS)) {
    const std::string why = std::strerror(errno);
    loop_.Cancel(limit_);
    limit_ = loop_.After(0, [this, why] { Close(why); });  // not from the constructor
    return;
  }
  loop_.Watch(fd_, EPOLLIN | EPOLLOUT, [this](uint32_t) { OnEvents(); });
}

Control::~Control() {
  loop_.Cancel(limit_);
  if (fd_ >= 0) {
    loop_.Forget(fd_);
    close(fd_);
  }
}

void Control::Close(const std::string& why) {
  if (state_ == State::kClosed) {
    return;
  }
  state_ = State::kClosed;
  loop_.Cancel(limit_);
  loop_.Forget(fd_);
  handlers_.on_closed(why);
}

void Control::Watch(bool wants_write) {
  loop_.Change(fd_, wants_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void Control::OnEvents() {
  if (state_ == State::kConnecting && !Connect()) {
    return;
  }
  if (state_ == State::kPreface && !WriteFirst()) {
    return;
  }
  if (state_ == State::kHandshake && !Handshake()) {
    return;
  }
  if (state_ == State::kOpen) {
    Write();
  }
  if (state_ == State::kOpen) {
    Read();
  }
}

bool Control::IsConnected() const {
  sockaddr_storage peer;
  socklen_t peer_length = sizeof peer;
  return getpeername(fd_, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0;
}

bool Control::Connect() {
  const int error = ErrorOf(fd_);
  if (error != 0) {
    Close(std::strerror(error));
    return false;
  }
  if (!IsConnected()) {
    return false;  // not yet
  }
  state_ = State::kPreface;
  return true;
}

bool Control::WriteFirst() {
  while (!first_.empty()) {
    const ssize_t sent = send(fd_, first_.data(), first_.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINPROGRESS) {
        Close(std::strerror(errno));
      }
      return false;
    }
    first_.erase(0, static_cast<size_t>(sent));
  }
  SSL_set_fd(ssl_.get(), fd_);
  SSL_set_connect_state(ssl_.get());
  state_ = State::kHandshake;
  return true;
}

bool Control::Handshake() {
  if (const int error = ErrorOf(fd_); error != 0) {
    Close(std::strerror(error));
    return false;
  }
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(ssl_.get());
  const int seen = errno;
  if (result == 1) {
    loop_.Cancel(limit_);
    state_ = State::kOpen;
    handlers_.on_open();
    return state_ == State::kOpen;
  }
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    Watch(error == SSL_ERROR_WANT_WRITE);
    return false;
  }
  if (error == SSL_ERROR_SYSCALL && ERR_peek_error() == 0) {
    Close(seen != 0 ? std::strerror(seen) : "it closed the connection");
  } else {
    Close(TlsError(ssl_.get()));
  }
  return false;
}

void Control::Send(const wire::Message& message) {
  out_ += wire::Encode(message);
  if (out_.size() > kOutMax) {
    // Not from here: who sends may not expect to be closed.
    loop_.Cancel(limit_);
    limit_ = loop_.After(0, [this] { Close("it does not read"); });
  } else if (state_ == State::kOpen) {
    Watch(true);
  }
}

void Control::Write() {
  while (!out_.empty()) {
    ERR_clear_error();
    const int sent = SSL_write(ssl_.get(), out_.data(), static_cast<int>(out_.size()));
    if (sent <= 0) {
      const int error = SSL_get_error(ssl_.get(), sent);
      if (error != SSL_ERROR_WANT_WRITE && error != SSL_ERROR_WANT_READ) {
        Close("the connection broke");
      }
      return;
    }
    out_.erase(0, static_cast<size_t>(sent));
  }
  Watch(false);
}

void Control::Read() {
  char buffer[16384];
  while (true) {
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), buffer, sizeof buffer);
    if (got <= 0) {
      const int error = SSL_get_error(ssl_.get(), got);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
        const std::string why =
            error == SSL_ERROR_SSL ? TlsError(ssl_.get()) : "it closed the connection";
        Frames();  // why it went, perhaps
        if (state_ == State::kOpen) {
          Close(why);
        }
        return;
      }
      break;
    }
    last_heard_ms_ = loop_.now_ms();
    in_.append(buffer, static_cast<size_t>(got));
  }
  Frames();
}

void Control::Frames() {
  while (state_ == State::kOpen) {
    const auto length = wire::FrameLength(in_);
    if (!length || (*length != 0 && in_.size() < *length)) {
      return;
    }
    if (*length == 0) {
      Close("what it says is not the protocol");
      return;
    }
    const wire::Decoded decoded = wire::Decode(std::string_view(in_).substr(0, *length));
    in_.erase(0, *length);
    if (decoded.code != wire::Code::kOk) {
      Close("what it says is not the protocol: " + decoded.why);
      return;
    }
    handlers_.on_message(decoded.message);
  }
}

}  // namespace sekisho::nxproxy::client
