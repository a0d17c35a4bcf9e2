// SPDX-License-Identifier: Apache-2.0
// Moves packets between the devices and the pure network, until a signal or the end of the parent.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "deploy/wan/counters.h"
#include "deploy/wan/network.h"
#include "deploy/wan/own_time.h"

namespace sekisho::wan {

class Emulator {
 public:
  // `devices` are descriptors, as the network's hosts; the emulator closes them.
  Emulator(std::unique_ptr<Network> network, std::vector<int> devices, bool is_busy);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  // Whoever connects to the socket at `path` gets the counters.  False and `error` if that cannot
  // be.
  bool Listen(const std::string& path, std::string& error);

  // Returns when `signals`, a signalfd, has one.
  void Run(int signals);

 private:
  int Wait(epoll_event* events, int max);
  void Read(int host);
  void Deliver();
  void Answer();

  std::unique_ptr<Network> network_;
  std::vector<int> devices_;
  const bool is_busy_;
  OwnTime own_time_;  // who sleeps does not know when a packet came in
  const int epoll_;
  int listener_ = -1;
  std::string listener_path_;
  DeliveryCounters deliveries_;
};

}  // namespace sekisho::wan
