// SPDX-License-Identifier: Apache-2.0
// The relay's handlers, shared by its relay_*.cc and nobody else.
#pragma once

#include "nxproxy/relay.h"

namespace sekisho::nxproxy {

constexpr size_t kEarlyBytes = 4096;  // with an opening, surely room for them in an idle connection

// A connection at the one port, until its first bytes say what it is.
struct Relay::Greeting final : Handler {
  Greeting(Relay& owner, Descriptor fd, const wire::Address& from, std::string first)
      : relay(owner),
        socket(std::move(fd)),
        peer(from),
        deadline_ms(owner.now_ms_ + owner.limits_.greeting_ms),
        bytes(std::move(first)) {
    relay.poller_.Add(socket.get(), EPOLLIN | EPOLLRDHUP, this);
  }
  ~Greeting() {
    if (socket.is_open()) {
      relay.poller_.Remove(socket.get());
    }
    relay.poller_.Forget(this);
  }
  void OnEvents(uint32_t /*events*/) override { relay.MoreOf(*this); }

  Relay& relay;
  Descriptor socket;
  wire::Address peer;
  int64_t deadline_ms;
  std::string bytes;
  std::list<std::unique_ptr<Greeting>>::iterator place;
};

// A control connection; with a session after HELLO.
struct Relay::Client {
  std::unique_ptr<Control> control;
  wire::Address peer;
  int64_t deadline_ms = 0;  // for HELLO
  uint64_t session = 0;
};

// A target that is being dialled.
struct Relay::Dial final : Handler {
  explicit Dial(Relay& owner) : relay(owner) {}
  ~Dial() {
    if (target.is_open()) {
      relay.poller_.Remove(target.get());
    }
    relay.poller_.Forget(this);
  }
  void OnEvents(uint32_t /*events*/) override { relay.Dialled(*this, ConnectError(target.get())); }

  Relay& relay;
  Descriptor target;
  wire::Address address;
  Waiting waiting;
};

// The other end of the data threads' pipe.
class Relay::EndedReader final : public Handler {
 public:
  explicit EndedReader(Relay& relay);
  ~EndedReader();
  void OnEvents(uint32_t /*events*/) override { relay_.Ended(); }
  StreamLoop::Streams Take();  // those that have come
  int write_fd() const { return write_.get(); }

 private:
  Relay& relay_;
  Descriptor read_;
  Descriptor write_;
};

}  // namespace sekisho::nxproxy
