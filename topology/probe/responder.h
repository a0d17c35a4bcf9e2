// SPDX-License-Identifier: Apache-2.0
// Sends back what probes send, in bounds: so many connections, so many bytes a connection, none
// idle for long.  Needs no privilege.  docs/protocol/12-topology.md, "Probing".
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"

namespace sekisho::topology {

class Responder {
 public:
  Responder() = default;
  ~Responder();
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // Port 0: any.
  absl::Status Listen(const std::string& address, uint16_t port);
  uint16_t port() const { return port_; }

  // Serves until Stop(), which another thread or a signal handler may call.
  void Run();
  void Stop();

 private:
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  uint16_t port_ = 0;
};

}  // namespace sekisho::topology
