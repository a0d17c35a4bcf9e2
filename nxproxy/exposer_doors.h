// SPDX-License-Identifier: Apache-2.0
// The exposer's handlers, shared by its exposer*.cc and nobody else.
#pragma once

#include "nxproxy/exposer.h"

namespace sekisho::nxproxy {

struct Exposer::Door final : Handler {
  explicit Door(Exposer& owner) : exposer(owner) {}
  ~Door() {
    if (socket.is_open()) {
      exposer.poller_.Remove(socket.get());
    }
    exposer.poller_.Forget(this);
  }
  void OnEvents(uint32_t /*events*/) override { exposer.DoorEvent(*this); }

  Exposer& exposer;
  Descriptor socket;
  bool is_connected = false;
  bool is_spare = false;
  uint64_t stream = 0;
};

struct Exposer::Inner final : Handler {
  explicit Inner(Exposer& owner) : exposer(owner) {}
  ~Inner() {
    if (target.is_open()) {
      exposer.poller_.Remove(target.get());
    }
    exposer.poller_.Forget(this);
  }
  void OnEvents(uint32_t /*events*/) override { exposer.Dialled(*this); }

  Exposer& exposer;
  Descriptor outside;
  Descriptor target;
  wire::Address peer;
  const Exposure* exposure = nullptr;
  int64_t deadline_ms = 0;
};

}  // namespace sekisho::nxproxy
