// SPDX-License-Identifier: Apache-2.0
// One end of a measurement, its other end in a process of its own: over PM or over TCP, alike in
// all else.
#pragma once

#include <cstddef>
#include <memory>

#include "transport/pm/context.h"

namespace sekisho::pm {

struct Traffic {
  std::size_t size = 8;
  bool round_trip = true;  // else one way, as fast as it goes
  Waiting waiting = Waiting::kSpin;
  bool payload_tag = true;
  int server_core = 1;  // ours is 0
};

struct Measured {
  double value = 0;              // us a round trip, or bytes that arrived a second
  double processor_seconds = 0;  // of both ends, a GiB
};

class End {
 public:
  virtual ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  Measured Run(Nanos time);

 protected:
  // What both ends see.
  struct Board {
    std::atomic<std::uint64_t> arrived{0};  // bytes, one way
  };

  explicit End(const Traffic& traffic);
  // In a process that ends with us; stopped but in Run, lest it takes a core from the other side.
  void Fork();
  virtual void Serve() = 0;
  virtual void RoundTrip() = 0;
  virtual void SendSome() = 0;
  virtual void Drain() {}

  const Traffic traffic_;
  Board* board_ = nullptr;

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

std::unique_ptr<End> OpenPmEnd(const Traffic& traffic);
std::unique_ptr<End> OpenTcpEnd(const Traffic& traffic);

// A network of our own: loopback with an MTU of 1500, which nobody else uses.  False: not allowed.
bool EnterPrivateNetwork();
// Random loss of what arrives there; false: there is no nft.
bool SetLoss(double percent);

}  // namespace sekisho::pm
