// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/listener.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/socket.h>

namespace sekisho::nxproxy {
namespace {

constexpr int kAcceptsPerTurn = 64;

}  // namespace

Reserve::Reserve() : held_(open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

Reserve& Reserve::Get() {
  static Reserve reserve;
  return reserve;
}

void Reserve::Refuse(int listening) {
  held_.reset();
  Reset(Descriptor(accept4(listening, nullptr, nullptr, SOCK_CLOEXEC)));
  held_ = Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

Listener::Listener(Poller& poller, Descriptor socket, Events events)
    : poller_(poller), socket_(std::move(socket)), events_(std::move(events)) {
  Reserve::Get();
  poller_.Add(socket_.get(), EPOLLIN, this);
}

Listener::~Listener() { Close(); }

void Listener::Close() {
  if (socket_.is_open()) {
    poller_.Remove(socket_.get());
    poller_.Forget(this);
    socket_.reset();
  }
}

void Listener::OnEvents(uint32_t /*events*/) {
  for (int i = 0; i < kAcceptsPerTurn && socket_.is_open(); ++i) {
    sockaddr_storage raw{};
    socklen_t length = sizeof raw;
    Descriptor fd(accept4(socket_.get(), reinterpret_cast<sockaddr*>(&raw), &length,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.is_open()) {
      if (errno == EMFILE || errno == ENFILE) {
        Reserve::Get().Refuse(socket_.get());
        events_.exhausted();
      }
      return;
    }
    events_.accepted(std::move(fd),
                     wire::FromSocket(reinterpret_cast<sockaddr*>(&raw)).value_or(wire::Address{}));
  }
}

}  // namespace sekisho::nxproxy
