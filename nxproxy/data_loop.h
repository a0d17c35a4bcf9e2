// SPDX-License-Identifier: Apache-2.0
// A thread that moves streams' bytes.  Streams come and go through pipes: nothing is shared but
// counters.
#pragma once

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "nxproxy/stream_loop.h"

namespace sekisho::nxproxy {

class DataLoop {
 public:
  // `ended_fd`: a pipe that takes pointers to streams that have ended and are closed.
  DataLoop(const StreamLimits& limits, int ended_fd);
  ~DataLoop();  // resets the streams that are left
  DataLoop(const DataLoop&) = delete;
  DataLoop& operator=(const DataLoop&) = delete;

  // Both by one thread, its owner's.
  void Give(std::unique_ptr<Stream> stream);
  void Deliver();  // what was given since: one wake-up for all of them
  size_t streams() const { return streams_.load(std::memory_order_relaxed); }
  bool is_bulk_busy() const { return busy_.load(std::memory_order_relaxed); }

 private:
  void Run();
  void TakeNew();
  void Report();

  const int ended_fd_;
  Descriptor epoll_;
  Descriptor wake_read_;
  Descriptor wake_write_;
  std::atomic<size_t> streams_{0};
  std::atomic<bool> busy_{false};
  std::atomic<bool> is_stopping_{false};

  std::vector<Stream*> given_;  // of the owner's thread

  StreamLoop loop_;  // of the thread alone
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace sekisho::nxproxy
