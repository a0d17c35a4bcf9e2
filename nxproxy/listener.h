// SPDX-License-Identifier: Apache-2.0
// A listening socket.  When no descriptors are left it refuses the newcomer and leaves the others
// be.
#pragma once

#include <functional>

#include "nxproxy/net.h"
#include "nxproxy/poller.h"

namespace sekisho::nxproxy {

class Listener final : public Handler {
 public:
  struct Events {
    std::function<void(Descriptor, const wire::Address& peer)> accepted;
    std::function<void()> exhausted;  // one peer was refused
  };
  Listener(Poller& poller, Descriptor socket, Events events);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void OnEvents(uint32_t events) override;
  void Close();  // the port is free; the object may still be on the way out of its own event
  uint16_t port() const { return LocalAddress(socket_.get()).port; }

 private:
  Poller& poller_;
  Descriptor socket_;
  Events events_;
};

// One descriptor that is kept for the moment when there are none: given up to accept and refuse.
class Reserve {
 public:
  static Reserve& Get();  // of the process, as the limit is
  // Refuses the peer that waits first at `listening`.
  void Refuse(int listening);

 private:
  Reserve();
  Descriptor held_;
};

}  // namespace sekisho::nxproxy
