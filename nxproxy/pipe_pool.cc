// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/pipe_pool.h"

#include <fcntl.h>
#include <unistd.h>

namespace sekisho::nxproxy {
namespace {

constexpr int kWanted = 1 << 20;
constexpr int kLeast = 64 << 10;  // smaller pipes cost more than copying
constexpr int kRetryAfter = 256;
constexpr size_t kKeep = 16;

}  // namespace

std::unique_ptr<Pipe> PipePool::Make() {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
    return nullptr;
  }
  auto pipe = std::make_unique<Pipe>(Pipe{Descriptor(ends[0]), Descriptor(ends[1]), 0});
  int capacity = fcntl(ends[0], F_SETPIPE_SZ, kWanted);
  if (capacity < 0) {
    capacity = fcntl(ends[0], F_GETPIPE_SZ);
  }
  if (capacity < kLeast) {
    return nullptr;
  }
  pipe->capacity = static_cast<size_t>(capacity);
  return pipe;
}

std::unique_ptr<Pipe> PipePool::Take() {
  if (!free_.empty()) {
    std::unique_ptr<Pipe> pipe = std::move(free_.back());
    free_.pop_back();
    return pipe;
  }
  if (made_ >= max_ || (refused_until_ > 0 && --refused_until_ > 0)) {
    return nullptr;
  }
  std::unique_ptr<Pipe> pipe = Make();
  if (pipe == nullptr) {
    refused_until_ = kRetryAfter;
    return nullptr;
  }
  ++made_;
  return pipe;
}

void PipePool::Return(std::unique_ptr<Pipe> pipe) {
  if (free_.size() < kKeep) {
    free_.push_back(std::move(pipe));
  } else {
    --made_;
  }
}

void PipePool::Discard(std::unique_ptr<Pipe> /*pipe*/) { --made_; }

}  // namespace sekisho::nxproxy
