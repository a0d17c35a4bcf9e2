// SPDX-License-Identifier: Apache-2.0
#include "agent/task/input_pump.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>

#include "agent/task/spec.h"

namespace sekisho::agent::task {
namespace {

constexpr size_t kMost = 256 << 10;
constexpr loff_t kFreeStep = 1 << 20;
constexpr loff_t kMaxPipe = 1 << 20;  // what an account may enlarge a pipe to

void Close(int& fd) {
  if (fd >= 0) {
    close(fd);
    fd = -1;
  }
}

}  // namespace

InputPump::~InputPump() {
  Close(file_);
  Close(taken_file_);
  Close(pipe_);
}

int InputPump::Open(uid_t uid, gid_t gid) {
  int ends[2];
  file_ = openat(dir_fd_, kInputFile, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  taken_file_ = openat(dir_fd_, kInputTaken, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  // Told at once, so that there is room for it later: without that no more would be sent.
  if (file_ < 0 || taken_file_ < 0 || !Tell() || pipe2(ends, O_CLOEXEC) != 0) {
    return -1;
  }
  pipe_ = ends[1];
  if (fchown(ends[0], uid, gid) != 0) {  // so that /dev/stdin can be opened
    errno = 0;
  }
  return ends[0];
}

void InputPump::Grown(bool is_last) {
  is_last_ = is_last_ || is_last;
  Pump();
}

void InputPump::Pump() {
  is_full_ = false;
  while (pipe_ >= 0) {
    const ssize_t n =
        splice(file_, &taken_, pipe_, nullptr, kMost, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n > 0 || (n < 0 && errno == EINTR)) {
      continue;
    }
    if (n == 0) {  // all that is there
      if (is_last_) {
        Close(pipe_);
      }
      break;
    }
    if (errno == EAGAIN) {
      is_full_ = true;
      break;
    }
    CloseTask();
  }
  if (is_behind()) {
    Publish();
  }
}

// The task reads no more: whatever comes counts as taken.
void InputPump::CloseTask() {
  Close(pipe_);
  taken_ = INT64_MAX;
}

bool InputPump::Tell() {
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%020lld\n", static_cast<long long>(taken_));
  if (pwrite(taken_file_, text, static_cast<size_t>(size), 0) != size) {
    return false;
  }
  told_ = taken_;
  return true;
}

void InputPump::Publish() {
  Tell();
  // What is still in the pipe may be the file's own pages: stay well behind it.
  const loff_t read = taken_ == INT64_MAX ? freed_ : (taken_ - kMaxPipe) & ~loff_t{4095};
  if (read - freed_ >= kFreeStep) {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, freed_, read - freed_);
    freed_ = read;
  }
}

}  // namespace sekisho::agent::task
