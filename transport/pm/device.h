// SPDX-License-Identifier: Apache-2.0
// An endpoint on a real UDP socket, driven by whoever calls it: no thread, no daemon.  Linux.
#pragma once

#include <memory>
#include <system_error>

#include "transport/pm/endpoint.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {

class Device {
 public:
  using Options = Wire::Options;

  // Binds `own` (port 0: any) and takes `config.datagram_max` as the limit of path MTU discovery.
  static std::error_code Open(const Config& config, const Address& own, const Options& options,
                              Cipher* cipher, std::unique_ptr<Device>& device);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Endpoint& endpoint() { return endpoint_; }
  static Nanos Now() { return Wire::Now(); }

  // Takes what arrived, does what is due, sends what may leave.  Whether anything arrived.
  bool Progress();
  // Sends what may leave: after calls of the application.
  void Flush();
  // Sleeps until a datagram is there, the protocol must act, or `until`; then makes progress.
  void Wait(Nanos until);

  int fd() const { return wire_.fd(); }
  const Address& own_address() const { return wire_.own_address(); }
  const WireCounters& counters() const { return wire_.counters(); }

 private:
  Device() = default;

  Wire wire_;
  Endpoint endpoint_;
  MutableBytes mapping_;
};

}  // namespace sekisho::pm
