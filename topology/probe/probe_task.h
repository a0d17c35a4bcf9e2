// SPDX-License-Identifier: Apache-2.0
// What a prober does besides listening: a socket that it waits for, until a deadline, until it is
// done.
#pragma once

#include <chrono>
#include <string>

#include <poll.h>

namespace sekisho::topology {

class ProbeTask {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~ProbeTask() = default;

  virtual pollfd Watch() const = 0;
  virtual void Handle(short events) = 0;           // that poll(2) saw
  virtual void Expire(Clock::time_point now) = 0;  // to be called when deadline() has come
  virtual Clock::time_point deadline() const = 0;
  virtual bool IsDone() const = 0;
  // For whoever ordered it.
  virtual std::string Result() const = 0;
};

}  // namespace sekisho::topology
