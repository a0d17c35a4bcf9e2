// SPDX-License-Identifier: Apache-2.0
// An endpoint on a real UDP socket, driven by whoever calls it: no thread, no daemon.  Linux.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "transport/pm/endpoint.h"

namespace sekisho::pm {

// "192.0.2.1:5000" or "[2001:db8::1]:5000".
std::error_code ParseAddress(const char* text, Address& address);

struct DeviceCounters {
  std::uint64_t receive_calls = 0, send_calls = 0;
  std::uint64_t received_together = 0;  // datagrams that came as part of a larger buffer (UDP_GRO)
  std::uint64_t sent_together = 0;  // datagrams that left as part of a larger buffer (UDP_SEGMENT)
  std::uint64_t blocked = 0;        // dropped here: the socket's buffer was full
  std::uint64_t too_large = 0;      // refused by the own interface (path MTU probes)
  std::uint64_t failed = 0;
  bool segmentation = false, coalescing = false;  // in use now
};

class Device {
 public:
  struct Options {
    bool offload = true;  // UDP_SEGMENT and UDP_GRO where the kernel has them
    int socket_buffer = 4 << 20;
  };

  // Binds `own` (port 0: any) and takes `config.datagram_max` as the limit of path MTU discovery.
  static std::error_code Open(const Config& config, const Address& own, const Options& options,
                              Cipher* cipher, std::unique_ptr<Device>& device);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Endpoint& endpoint() { return endpoint_; }
  static Nanos Now();

  // Takes what arrived, does what is due, sends what may leave.  Whether anything arrived.
  bool Progress();
  // Sends what may leave: after calls of the application.
  void Flush();
  // Sleeps until a datagram is there, the protocol must act, or `until`; then makes progress.
  void Wait(Nanos until);

  int fd() const { return fd_; }
  const Address& own_address() const { return own_; }
  const DeviceCounters& counters() const { return counters_; }

 private:
  // Datagrams of one size (the last may be shorter) to one address, one after the other in the
  // buffer.
  struct Run {
    Address to;
    std::size_t offset = 0;
    std::size_t size = 0;
    std::size_t step = 0;
    std::size_t count = 0;
    bool closed = false;
  };

  Device() = default;
  std::error_code OpenSocket(const Options& options);
  bool Receive(bool& full);
  void Send(std::span<Run> runs);
  void SendSingly(const Run& run);

  int fd_ = -1;
  int family_ = 0;
  Address own_;
  Endpoint endpoint_;
  DeviceCounters counters_;
  MutableBytes mapping_;  // endpoint, then receive buffers, then send buffer
  MutableBytes receive_buffers_;
  MutableBytes send_buffer_;
};

}  // namespace sekisho::pm
