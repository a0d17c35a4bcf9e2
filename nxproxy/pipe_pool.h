// SPDX-License-Identifier: Apache-2.0
// Pipes for splice(2), held only while bytes are moving: an unprivileged relay gets 64 large ones.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "nxproxy/poller.h"

namespace sekisho::nxproxy {

struct Pipe {
  Descriptor read;
  Descriptor write;
  size_t capacity = 0;
};

class PipePool {
 public:
  explicit PipePool(size_t max) : max_(max) {}

  // Null if there is none to be had; the caller copies instead.
  std::unique_ptr<Pipe> Take();
  void Return(std::unique_ptr<Pipe> pipe);   // empty
  void Discard(std::unique_ptr<Pipe> pipe);  // with bytes in it

  size_t made() const { return made_; }

 private:
  std::unique_ptr<Pipe> Make();

  const size_t max_;
  size_t made_ = 0;
  int refused_until_ = 0;  // Take() calls without trying, after the system refused
  std::vector<std::unique_ptr<Pipe>> free_;
};

}  // namespace sekisho::nxproxy
