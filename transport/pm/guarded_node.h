// SPDX-License-Identifier: Apache-2.0
// For tests: an endpoint in memory of which no byte outside can be touched unnoticed.
#pragma once

#include <sys/mman.h>

#include <gtest/gtest.h>

#include "transport/pm/endpoint.h"

namespace sekisho::pm {

// Memory that ends where a page ends that must not be touched, and begins behind one.
class Guarded {
 public:
  explicit Guarded(std::size_t size) {
    const std::size_t pages = (size + 4095) / 4096 * 4096;
    void* at = mmap(nullptr, pages + 2 * kGuard, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    base_ = static_cast<std::uint8_t*>(at);
    all_ = pages + 2 * kGuard;
    EXPECT_EQ(mprotect(base_ + kGuard, pages, PROT_READ | PROT_WRITE), 0);
    bytes_ = {base_ + kGuard + (pages - size) / 64 * 64, size};
  }
  ~Guarded() { munmap(base_, all_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  MutableBytes bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kGuard = 64 << 20;  // as far as a small index that is wrong may lead

  std::uint8_t* base_ = nullptr;
  std::size_t all_ = 0;
  MutableBytes bytes_;
};

struct Node {
  explicit Node(const Config& config)
      : area(Endpoint::AreaNeeded(config)),
        spare(Endpoint::AreaNeeded(config)),
        rings(Endpoint::RingsNeeded(config)) {
    EXPECT_FALSE(endpoint.Init(config, area.bytes(), rings.bytes(), nullptr, 1));
  }
  Guarded area, spare, rings;
  Endpoint endpoint;
};

inline Config SmallConfig(NodeId node) {
  Config config;
  config.node = node;
  config.channels = 2;
  config.send_ring = config.receive_ring = 4096;
  config.packets = 64;
  config.intervals = 16;
  config.key.fill(7);
  config.incarnation = node + 10u;
  return config;
}

}  // namespace sekisho::pm
